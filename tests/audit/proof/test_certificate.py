"""Certificates are values: they compare, pickle with their curves, and cannot be changed."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import pytest

import dither as dp
from dither.audit.proof.certificate import Certificate
from dither.audit.proof.certify import certify
from dither.audit.proof.evidence import Evidence
from support import each

from .test_certify import built_in

MECHANISMS = [mechanism for mechanism, _ in built_in((1,))]
IDS = [f"{index} {type(mechanism).__name__}" for index, mechanism in enumerate(MECHANISMS)]


@each("mechanism", MECHANISMS)
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


@pytest.mark.parametrize("claim", [dp.ApproxDP(1, 1e-6), dp.PureDP(1), dp.ZCDP(0.5)])
def test_bounds_on_both_sides_of_a_claim_neither_prove_nor_refute_it(claim):
    around = tuple(Fraction(factor) * claim.exact[-1] for factor in (Fraction(1, 2), 2))
    evidence = Evidence((around if len(claim.exact) == 1 else None), lambda _: around, "pair", "method", around)
    assert Certificate.of("mechanism", claim, evidence).verdict == "open"
