"""The page about synthetic records: only what was released, everything escaped, nothing loaded."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

import dither as dp
from dither.present import html, write_html
from dither.present.notes import Note
from dither.present.pages.synthetic import synthetic_page
from dither.publish import Attribute, Domain, Synthesizer, SyntheticPlan
from support import refuses

KEYS = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "plain"]


@pytest.fixture(scope="module")
def synthesis():
    domain = Domain(
        [
            Attribute.flat("kind", KEYS, null=True),
            Attribute.binned("age", [*range(0, 41, 2)]),
            Attribute.binned("<b>share</b>", [0.0, 0.25, 1.0]),
        ]
    )
    generator = np.random.default_rng(1)
    codes = [generator.integers(0, size, 5000) for size in (3, 20, 2)]
    synthesizer = Synthesizer(domain, dp.ZCDP(0.05))
    counts = {}
    for levels in synthesizer.tables:
        places = [i for i, level in enumerate(levels) if level]
        shape = [synthesizer.sizes[i] for i in places]
        flat = np.ravel_multi_index([codes[i] for i in places], shape)
        counts[levels] = np.bincount(flat, minlength=int(np.prod(shape)))
    return synthesizer.release(counts, rows=2000)


def test_the_page_runs_nothing_and_escapes_keys_names_and_rules(synthesis):
    plan = cast(
        SyntheticPlan,
        SimpleNamespace(constraints=["kind <> '<script>'"], notes=[Note("unused_columns", {"names": ["<b>"]})]),
    )
    page = synthetic_page(synthesis, "A <title>", plan)
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "A &lt;title&gt;" in page
    assert "&lt;script&gt;" in page
    assert page.count('<svg xmlns="') == 3
    assert "src=" not in page.replace("img src=x", "")
    assert re.search(r"<td>2,000 of 3 columns</td>", page)


def test_the_page_is_written_and_other_things_are_refused(synthesis, tmp_path):
    write_html(tmp_path / "page.html", synthesis)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == html(synthesis)
    with refuses(dp.InvalidArgument, "publication", "Table"):
        html(synthesis.records)
