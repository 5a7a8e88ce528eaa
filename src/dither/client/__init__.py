"""The tables of a server (``dither serve``) in Python: :func:`dither.connect`.

The objects are those of the library. Parsing and checks of questions run here, by the card that the server shows;
explanations and answers come from the server. Only the standard library speaks HTTP here.
"""
