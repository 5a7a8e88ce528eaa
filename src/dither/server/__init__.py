"""The server: people sign in, ask, and get exactly what the library gives; ``dither serve`` starts it.

Pages and the JSON interface both call :class:`dither.server.service.Service`. What each role may do is decided there,
once, by the table in :mod:`dither.server.roles`.
"""
