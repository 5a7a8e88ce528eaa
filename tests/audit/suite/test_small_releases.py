"""Publishing from rows is replayed with people of twenty rows, and what is broken is found."""

from __future__ import annotations

import numpy as np
import pytest

import dither as dp
from dither.audit.dataflow.replay import replay
from dither.audit.suite import small_releases as small
from dither.publish import Attribute, Domain, MarginalPlan, table_spec
from dither.publish.counting import Counting
from dither.tables.query.tree import Column
from dither.tables.table import open as open_table

ONE, OTHER = small.people()
DOMAIN = Domain([Attribute.flat("town", ["a", "b"], null=True, other="other"), Attribute.binned("who", [0, 5, 9])])


def publish(rows, contribution=None, cells=None):
    """Tables with intervals, whole counts and records, from the rows of a table."""
    with open_table(rows, unit="who", max_rows=3, budget=small.PUBLISHING_CLAIM) as table:
        counting = Counting(table, DOMAIN, (Column("town"), Column("who")))
        plan = MarginalPlan(
            DOMAIN,
            [table_spec(DOMAIN, ["town", "who"]), table_spec(DOMAIN, ["town"])],
            contribution=contribution or counting.contribution,
            unit=counting.unit,
        )
        results = []

        def compute(_, counts):
            given = {levels: counts[levels] if cells is None else cells(counts[levels]) for levels in counts}
            publication = plan.release(given, small.PUBLISHING_CLAIM)
            results.append([publication.table("town").to_pylist(), publication.records().to_pylist()])
            return b""

        counting.release(plan.needed, small.PUBLISHING_CLAIM, {}, compute)
    return results


def test_nothing_but_noisy_residuals_depends_on_a_person_of_twenty_rows():
    result = replay(publish, ONE, OTHER, claim=small.PUBLISHING_CLAIM, rounds=1)
    assert result.passed, result
    assert result.recorded == 1
    assert result.releases[0].change.ratio == pytest.approx(1, abs=1e-3)


def test_a_plan_depends_on_a_person_of_twenty_rows_through_its_mechanism_alone():
    def pipeline(rows):
        with open_table(rows, unit="who", max_rows=3, budget=small.PUBLISHING_CLAIM) as table:
            lookup = {"part": ["west", "west", "east"], "town": ["a", "b", "c"]}
            plan = dp.publish.Plan(
                table=table,
                tables=[("part", "late"), ("town",)],
                columns={"late": {"expression": "who >= 10", "keys": [False, True]}},
                nested={"place": ["part", "town"]},
                lookups={"place": lookup},
            )
            publication = plan.release(epsilon=1, delta=0.01)
            tables = [publication.table(*names).to_pylist() for names in (("part", "late"), ("town",))]
            return tables, publication.records().to_pylist(), publication.remaining, publication.notes

    result = replay(pipeline, ONE, OTHER, claim=small.PUBLISHING_CLAIM, rounds=1)
    assert result.passed, result
    assert (result.recorded, result.ended) == (1, "")
    assert result.releases[0].change.ratio == pytest.approx(1, abs=1e-3)


def test_synthetic_records_depend_on_a_person_of_twenty_rows_through_mechanisms_alone():
    columns = {"town": ["a", "b"], "group": {"expression": "who % 3", "keys": [0, 1, 2]}}

    def pipeline(rows):
        with open_table(rows, unit="who", max_rows=3, budget=small.PUBLISHING_CLAIM) as table:
            return dp.publish.synthesize(table, columns, epsilon=1, delta=0.01).to_pylist()

    result = replay(pipeline, ONE, OTHER, rounds=1)  # without the claim: replay knows no zCDP of selections
    assert result.passed, result
    assert result.recorded > 2
    assert result.ended == ""


@pytest.mark.parametrize(
    ("defect", "finding"),
    [
        ({"contribution": 1 << 14}, "its input moved by 3 times the declared sensitivity"),
        ({"cells": lambda counts: counts * 2}, "its input moved by 2 times the declared sensitivity"),
    ],
)
def test_a_wrong_sensitivity_is_found(defect, finding):
    result = replay(lambda rows: publish(rows, **defect), ONE, OTHER, rounds=1)
    assert not result.passed
    assert finding in str(result)


def test_tables_that_depend_on_the_data_are_found():
    def leaking(rows):
        return [publish(rows), rows.num_rows]

    assert not replay(leaking, ONE, OTHER, rounds=1).passed


def test_transcripts_are_running_sums():
    transcripts = small.running_sums(small.HISTORY, 4000)
    deviations = np.sqrt([small.plan_for().variance(step) for step in range(1, 7)])
    assert transcripts.shape == (4000, 6)
    assert (np.abs(transcripts.mean(axis=0) - np.cumsum(small.HISTORY)) < 7 * deviations / np.sqrt(4000)).all()
