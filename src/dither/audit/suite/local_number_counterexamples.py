"""Counterexamples of local reports about numbers, sets, words and days; see :mod:`dither.audit.suite.local_numbers`."""

from __future__ import annotations

from dither.audit.suite import local_numbers
from dither.audit.suite.case import Counterexample

NUMBER_COUNTEREXAMPLES: tuple[Counterexample, ...] = (
    Counterexample(
        "local mean of two kinds", "which kind of report is sent depends on the number", local_numbers.CLAIM, 0.0, 0.5,
        local_numbers.mean_of_two_kinds,
        local_numbers.mean_reports,
    ),
    Counterexample(
        "local window cut off", "a bin at the edge has fewer reports in its window", local_numbers.CLAIM, 0.0, 0.5,
        local_numbers.window_cut_off,
        local_numbers.distribution_reports,
    ),
    Counterexample(
        "local reports of every item", "how many there are depends on the set", local_numbers.CLAIM, {0, 1, 2}, set(),
        local_numbers.every_item,
        local_numbers.set_reports,
    ),
    Counterexample(
        "local words in every round", "reports of one person compose", local_numbers.CLAIM, "aaa", "zzz",
        local_numbers.asked_in_every_round,
        local_numbers.word_reports,
    ),
    Counterexample(
        "local budget reset every day", "five days cost five times as much", local_numbers.CLAIM, 0, 1,
        local_numbers.reset_every_day,
        local_numbers.remembered_reports,
    ),
)  # fmt: skip
"""The counterexamples of this module."""
