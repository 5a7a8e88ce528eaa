"""What a server and its clients send each other: JSON, read strictly by :mod:`dither.tables.codec`.

:mod:`~dither.wire.protocol` has paths and errors, :mod:`~dither.wire.requests` questions and options,
:mod:`~dither.wire.results` answers, explanations and cards. What comes from a client is never trusted: a question is
parsed again, or built again by the builder's own steps (:mod:`~dither.wire.requests`).
"""
