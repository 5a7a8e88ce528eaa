"""The errors of the server are values, as all of dither's are."""

from __future__ import annotations

import copy
import pickle

from dither.server.errors import Conflict, NotFound, NotSignedIn, Stopping, TooMany, Unavailable, retry_after
from dither.server.roles import Forbidden
from support import each

ERRORS = [
    NotFound.of("table"), NotSignedIn.refusal(), TooMany.of("requests", "at most 5 a minute", 7), Unavailable.now(),
    Stopping.now(), Conflict("taken"), Forbidden("role", "the role steward", "no role", "ask for it"),
]  # fmt: skip


@each("error", ERRORS)
def test_errors_are_pickled_and_copied_with_all_their_fields(error):
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
        assert retry_after(again) == retry_after(error)
