"""What the server and its clients send each other: JSON, versioned and strict.

One module a document, each with ``to_json`` and ``from_json`` (in JSON's own types, ready for ``json.dumps``):
:mod:`~dither.wire.questions`, :mod:`~dither.wire.options`, :mod:`~dither.wire.answers`,
:mod:`~dither.wire.explanations`, :mod:`~dither.wire.cards`, :mod:`~dither.wire.guarantees` and
:mod:`~dither.wire.problems`. A field that a document does not have is refused, and so is another version. What comes
from a client is never trusted: a question is parsed or built again on the server, by the rules of the library.
"""
