"""Pages about publications: they show every table and every promise, and no key of a domain breaks out of them.

Treemaps: areas are sizes, boxes fill the picture and do not overlap.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.present import html, write_html
from dither.present.pages.publication import layout, treemap
from dither.publish import Attribute, Domain, MarginalPlan, public_totals, table_spec

from .test_pages import NASTY, check_safe

KEYS = [sign.replace("\ud800", "") for sign in NASTY]
LOOKUP = {"state": [KEYS[i // 20] for i in range(180)], "county": [f"{KEYS[i // 20]} {i}" for i in range(180)]}
DOMAIN = Domain([Attribute.nested("place", ["state", "county"], LOOKUP), Attribute.flat("sex", ["f", "m"], null=True)])
COUNTS = np.random.default_rng(1).poisson(5, (180, 3))


def released(names, **options):
    plan = MarginalPlan(DOMAIN, [table_spec(DOMAIN, table) for table in names], **options)
    return plan.release({(2, 1): COUNTS}, dp.ApproxDP(1, 1e-9))


def test_every_table_is_shown_and_nothing_breaks_out():
    publication = released([["county", "sex"], ["state"], ["sex"], []])
    page = html(publication, KEYS[0])
    reader = check_safe(page)
    text = " ".join(reader.text)
    for part in ("county × sex. The first 25 of 540 rows.", "(ε, δ) = (1, 1e-09)", "at most 2.72 times", "NULL"):
        assert part in text
    for promise in ("value ± error", "whole", "records"):
        assert promise in reader.text
    for value in publication.table("sex").column("integer").to_pylist():
        assert f"{value:,}" in reader.text
    assert page.count("<svg") == 4  # treemaps of both levels, bars of the states and of the sexes
    assert page == html(publication, KEYS[0])


def test_cost_receipt_and_notes_of_a_charged_release_are_shown():
    rows = pa.table({"sex": ["f", "m"] * 300})
    with dp.open(rows, keys={"sex": ["f", "m"]}, budget=dp.ZCDP(1)) as people:
        publication = dp.publish.Plan(table=people, tables=[("sex",)]).release(rho=0.5)
    text = " ".join(check_safe(html(publication)).text)
    for part in (str(publication.cost), str(publication.remaining), publication.receipt, *map(str, publication.notes)):
        assert part in text


def test_public_totals_are_exact_on_the_page():
    totals = public_totals(DOMAIN, {"sex": COUNTS.sum(axis=0).tolist()})
    page = html(released([["state", "sex"], ["sex"]], totals=totals))
    text = " ".join(check_safe(page).text)
    assert "sex: numbers that were public already" in text
    assert f"{COUNTS[:, 0].sum():,} exact" in " ".join(text.split())


def test_estimates_without_whole_counts_do_not_speak_of_them():
    wide = Domain([Attribute.flat(name, range(1000)) for name in "ijk"])
    plan = MarginalPlan(wide, [table_spec(wide, [name]) for name in "ijk"])
    page = html(plan.release({levels: np.full(1000, 5) for levels in plan.needed}, dp.ZCDP(0.5)))
    assert "whole" not in check_safe(page).text
    assert "records" not in check_safe(page).text


def test_a_page_is_written_whole_and_only_of_publications(tmp_path):
    write_html(tmp_path / "tables.html", released([["sex"]]), "Sexes")
    assert (tmp_path / "tables.html").read_text(encoding="utf-8").endswith("</html>\n")


@pytest.mark.parametrize("seed", range(5))
def test_boxes_of_a_treemap_have_their_areas_and_do_not_overlap(seed):
    generator = np.random.default_rng(seed)
    sizes = np.sort(generator.gamma(0.5, 1, 40) + 1e-3)[::-1]
    boxes = np.array(layout(sizes.tolist(), (0.0, 0.0, 7.0, 3.0)))
    np.testing.assert_allclose(boxes[:, 2] * boxes[:, 3], 21 * sizes / sizes.sum(), rtol=1e-9)
    assert boxes[:, 0].min() >= 0
    assert (boxes[:, :2] + boxes[:, 2:] <= np.array([7, 3]) + 1e-9).all()
    left, top, right, bottom = boxes[:, 0], boxes[:, 1], boxes[:, 0] + boxes[:, 2], boxes[:, 1] + boxes[:, 3]
    width = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    height = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    overlap = np.maximum(width, 0) * np.maximum(height, 0)
    np.fill_diagonal(overlap, 0)
    assert overlap.max() < 1e-9


def test_places_without_people_are_not_drawn():
    assert treemap(["a", "b"], [0.0, 4.0], [0.1, 0.2], "places").count("<rect") == 1 + 5
