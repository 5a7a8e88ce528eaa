"""Certificates are values: they compare, pickle with their curves, and cannot be changed."""

from __future__ import annotations

import copy
import pickle

import pytest

import dither as dp
from dither.audit.proof.certify import certify

from .test_certify import built_in

pytestmark = pytest.mark.usefixtures("code_compared_once")

MECHANISMS = [mechanism for mechanism, _ in built_in((1,))]
IDS = [f"{index} {type(mechanism).__name__}" for index, mechanism in enumerate(MECHANISMS)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=IDS)
def test_a_certificate_survives_pickling(mechanism):
    certificate = certify(mechanism)
    restored = pickle.loads(pickle.dumps(certificate))
    assert restored == certificate
    assert hash(restored) == hash(certificate)
    assert restored.curve(0.5) == certificate.curve(0.5)
    assert copy.deepcopy(certificate) == certificate


def test_certificates_of_equal_mechanisms_are_equal():
    assert certify(dp.Laplace(1, 1)) == certify(dp.Laplace(1, 1))
    assert certify(dp.Laplace(1, 1)) != certify(dp.Laplace(1, 2))
    assert len({certify(dp.Laplace(1, 1)), certify(dp.Laplace(1, 1))}) == 1
