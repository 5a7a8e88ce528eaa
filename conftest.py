"""The package is loaded before its doctests are collected: pytest would execute the first module of it twice."""

import dither.audit  # noqa: F401
