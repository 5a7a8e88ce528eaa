"""One pipeline for everything that is paid: questions, publications, synthetic records and series.

:mod:`~dither.release.pipeline` has the steps check, identify, charge, compute and record, the incident log, which only
the steward may see, and the progress line of a long release.
"""
