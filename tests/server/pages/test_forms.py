"""What people write into forms: refused in words where it is no number, and never guessed."""

from __future__ import annotations

import pytest
from starlette.datastructures import FormData

import dither as dp
from dither.errors import InvalidArgument
from dither.server.pages.forms import AskedOptions, asked_options, limit_of, number, text_of


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "1e400", "ten", "1;2", "\u0661", "0x10"])
def test_no_number_is_refused_in_words(text):
    with pytest.raises(InvalidArgument, match="expected a number above 0"):
        number(text, "ε")


def test_a_form_becomes_options():
    form = FormData([("by", "error"), ("error", "50"), ("epsilon", "1"), ("bias", "yes"), ("again", "no")])
    assert asked_options(form).options() == {"error": 50.0, "bias": True}
    assert asked_options(form).flags == ("bias",)
    assert AskedOptions().flags == ()
    assert AskedOptions(by="error", error="2.5%").options() == {"error": "2.5%"}


def test_a_limit_is_in_epsilon_with_or_without_delta_or_in_rho():
    assert limit_of(FormData([("epsilon", "2")])) == dp.PureDP(2)
    assert limit_of(FormData([("rho", "0.5")])) == dp.ZCDP(0.5)
    assert limit_of(FormData([])) is None
    for fields in ([("rho", "1"), ("epsilon", "1")], [("delta", "1e-6")]):
        with pytest.raises(InvalidArgument):
            limit_of(FormData(fields))


def test_long_texts_are_refused():
    with pytest.raises(InvalidArgument, match="at most 5 characters"):
        text_of(FormData([("name", "123456")]), "name", 5)
