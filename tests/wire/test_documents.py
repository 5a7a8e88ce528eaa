"""JSON is read strictly: one version, no unknown field, no field twice, no number that JSON does not have."""

from __future__ import annotations

import pytest

from dither.errors import DitherError, InvalidArgument, WrongType
from dither.wire import documents
from support import refuses


@pytest.mark.parametrize("body", [b"", b"{", b"NaN", b"[Infinity]", b'{"a":1,"a":2}', b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_refused(body):
    with refuses(InvalidArgument, "body", "JSON"):
        documents.read(body)


def test_versions():
    assert documents.fields({"version": 1, "a": 2}, "thing", ("a",)) == {"a": 2}
    for version in (2, "1", None, True, [1]):
        with refuses(InvalidArgument, "thing.version"):
            documents.fields({"version": version, "a": 2}, "thing", ("a",))


def test_fields_are_those_that_are_declared():
    with refuses(InvalidArgument, "thing.epsilom", "epsilon"):
        documents.fields({"epsilom": 1}, "thing", (), ("epsilon",))
    with refuses(InvalidArgument, "thing.a"):
        documents.fields({}, "thing", ("a",))
    with refuses(WrongType, "thing"):
        documents.fields([], "thing", ())


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (documents.text, 5),
        (documents.flag, 1),
        (documents.flag, "true"),
        (documents.texts, "ab"),
        (documents.texts, [1]),
    ],
)
def test_values_have_their_types(reader, value):
    with refuses(DitherError, "part"):
        reader(value, "part")
