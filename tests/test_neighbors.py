from __future__ import annotations

import pickle

import pytest

from dither import AddRemove, DitherError, Neighbors, ReplaceOne
from dither.neighbors import relation
from support import refuses


def test_there_are_two_relations_and_they_differ() -> None:
    assert set(Neighbors) == {AddRemove, ReplaceOne}
    assert AddRemove is not ReplaceOne


@pytest.mark.parametrize("one", Neighbors)
def test_a_relation_is_itself_after_checking_and_pickling(one: Neighbors) -> None:
    assert relation(one) is one
    assert pickle.loads(pickle.dumps(one)) is one
    assert repr(one) == one.name
    assert one.description


@pytest.mark.parametrize("junk", ["AddRemove", "replace_one", None, 1, True, Neighbors, object()])
def test_anything_else_is_refused_without_a_default(junk: object) -> None:
    with refuses(TypeError) as refused:
        relation(junk)
    assert isinstance(refused.value, DitherError)
