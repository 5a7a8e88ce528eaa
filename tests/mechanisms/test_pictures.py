"""Every frozen object that a person might look at has a fragment for notebooks, and mechanisms have a picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import dither as dp
from dither.mechanisms.pictures import fragment

MECHANISMS = [
    dp.Laplace(1, 1), dp.Gaussian(1, 1, 1e-6), dp.Staircase(1, 1), dp.MixedNoise(1, 1, 1e-6),
    dp.BoundedLaplace(1, 1, 0, 10), dp.SmoothNoise("laplace", 1, 1e-6), dp.Exponential(1, 1), dp.NoisyMax(1, 1),
    dp.PermuteAndFlip(1, 1), dp.RandomizedResponse(1), dp.RandomizedResponse(1, ["<a>", "b", "c"]),
]  # fmt: skip
WITHOUT_A_LAW = [dp.TopK(2, 1, 1), dp.SparseVector(1, 1), dp.ProposeTestRelease(1, 1, 1e-6)]
OTHERS = {
    "estimate": lambda: dp.stats.mean([1, 2, 3], (0, 4), 1),
    "histogram": lambda: dp.stats.histogram([1, 2, 3], (0, 4), 1, bins=4),
    "density": lambda: dp.density.release([0.5] * 20, (0, 1), 1, bins=4),
    "two dimensions": lambda: dp.density.release(np.full((20, 2), 0.5), [(0, 1), (0, 1)], 1, bins=2),
    "best": lambda: dp.accounting.best_of(10 * dp.Laplace(1, 0.1).event, 1e-6),
    "result": lambda: dp.course.find("theorem 10")[0],
    "results": lambda: dp.course.find("lemma"),
    "certificate": lambda: dp.audit.certify(dp.Laplace(1, 1)),
    "measurement": lambda: dp.audit.measure(dp.Laplace(1, 2), 0.0, 1.0, claim=0.5, trials=2000),
    "measurement without a claim": lambda: dp.audit.measure(dp.Laplace(1, 2), 0.0, 1.0, trials=2000),
    "audit": lambda: dp.audit.Audit((dp.audit.Row("m", "f", "ε", 1, 0, None, None, None, "proved", 0.1),), 0.99, 1.0),
    "replay": lambda: dp.audit.replay(lambda x: dp.Laplace(1, 1).release(sum(x)), [1, 2], [1]),
}


def check(page: str) -> ET.Element:
    assert "<script" not in page
    assert not re.search(r"\son[a-z]+=", page)
    return ET.fromstring(page)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_mechanism_shows_what_it_promises_and_a_picture(mechanism):
    tree = check(mechanism._repr_html_())
    assert str(mechanism.guarantee) in "".join(tree.itertext())
    assert tree.find(".//{http://www.w3.org/2000/svg}svg") is not None


@pytest.mark.parametrize("mechanism", WITHOUT_A_LAW, ids=repr)
def test_a_mechanism_without_one_law_shows_what_it_promises(mechanism):
    assert str(mechanism.guarantee) in "".join(check(fragment(mechanism)).itertext())


@pytest.mark.parametrize("name", OTHERS)
def test_other_values_show_themselves(name):
    value = OTHERS[name]()
    check(value._repr_html_())


def test_a_picture_reads_no_data_and_is_the_same_every_time():
    assert dp.Laplace(1, 1)._repr_html_() == dp.Laplace(1, 1)._repr_html_()
    assert dp.Laplace(1, 1)._repr_html_() != dp.Laplace(1, 2)._repr_html_()
