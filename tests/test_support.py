"""The helper for refusals passes on what it should and on nothing else."""

from __future__ import annotations

import pytest

from dither.errors import InvalidArgument, NotPrivate, WrongType, message
from support import refuses

TEXT = message("epsilon", "a number above 0", -1, "pass epsilon=1")


def test_a_message_with_every_fragment_passes():
    with refuses(ValueError, "epsilon", "above 0", "pass epsilon=1") as refusal:
        raise InvalidArgument(TEXT)
    assert str(refusal.value) == TEXT


@pytest.mark.parametrize("fragment", ["delta", "above.0"])
def test_a_missing_fragment_fails_and_fragments_are_no_patterns(fragment):
    with pytest.raises(AssertionError, match="not in the message"), refuses(InvalidArgument, fragment):
        raise InvalidArgument(TEXT)


@pytest.mark.parametrize("text", ["", "no", "epsilon: expected 1, got 2.", "epsilon: expected 1. Fix: pass 1."])
def test_a_message_without_expected_got_and_fix_fails(text):
    with pytest.raises(AssertionError, match="not of the form"), refuses(InvalidArgument):
        raise InvalidArgument(text)


def test_another_kind_of_error_is_not_a_refusal():
    with pytest.raises(NotPrivate), refuses(WrongType):
        raise NotPrivate(TEXT)


def test_no_error_at_all_fails():
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"), refuses(InvalidArgument):
        pass


def refuse_with_a_cause(*, suppressed):
    try:
        float("Ada")
    except ValueError as error:
        if suppressed:
            raise InvalidArgument(TEXT) from None
        raise InvalidArgument(TEXT) from error


def test_a_private_value_fails_in_the_message_and_in_its_causes():
    with pytest.raises(AssertionError, match="private value"), refuses(InvalidArgument, hiding=["Ada"]):
        raise InvalidArgument(message("data", "numbers", "Ada", "pass numbers"))
    with pytest.raises(AssertionError, match="private value"), refuses(InvalidArgument, hiding=["Ada"]):
        refuse_with_a_cause(suppressed=False)
    with refuses(InvalidArgument, hiding=["Ada"]):
        refuse_with_a_cause(suppressed=True)
