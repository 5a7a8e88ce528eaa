"""Numbers for people: digits follow the ±, thousands are separated, and any number can be written."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.present.digits import decimals_of, rounded, significant, two_digits, with_error

PLAIN = re.compile(r"-?[0-9]{1,3}(,[0-9]{3})*(\.[0-9]+)?")


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (15.6828, 0.848, ("15.7", "0.8")),
        (15.6828, 0.31, ("15.68", "0.31")),
        (15.6828, 0.97, ("15.7", "1.0")),
        (98845, 181.7, ("98,840", "180")),
        (2157950.0, 33000.0, ("2,158,000", "33,000")),
        (2157950.0, None, ("2,157,950", "")),
        (41, 3.0, ("41", "3")),
        (0.00123456, 0.0000789, ("0.00123", "0.00008")),
        (5, 0.0, ("5", "0")),
        (5.0, math.inf, ("5", "inf")),
        (-0.001, 0.5, ("0.0", "0.5")),
    ],
)
def test_a_number_has_the_digits_of_its_error(value, error, expected):
    assert with_error(value, error) == expected


@given(st.floats(min_value=-1e12, max_value=1e12), st.floats(min_value=1e-5, max_value=1e12))
def test_rounding_moves_a_number_by_a_seventh_of_its_error_at_most(value, error):
    text, width = with_error(value, error)
    assert PLAIN.fullmatch(text)
    assert abs(float(text.replace(",", "")) - value) <= error / 7 + 1e-9 * abs(value)
    assert float(width.replace(",", "")) == pytest.approx(error, rel=1 / 7)
    assert len(width.replace(",", "").replace(".", "").strip("0")) <= 2


@given(st.floats(), st.floats(min_value=0) | st.none())
def test_any_number_can_be_written(value, error):
    assert all(isinstance(text, str) for text in with_error(value, error))
    assert significant(value)
    assert two_digits(abs(value))


@given(st.integers(), st.floats(min_value=0) | st.none())
def test_any_whole_number_can_be_written_without_decimals(value, error):
    assert "." not in with_error(value, error)[0]


def test_places():
    assert [decimals_of(error) for error in (9.44, 9.96, 0.1, 1234, 3.56)] == [0, 0, 2, -2, 0]
    assert rounded(1e300, 2) == "1e+300"
