"""One pipeline for everything that is paid: questions, publications, synthetic records and series.

* :mod:`~dither.release.pipeline`: the steps check, identify, charge, compute and record, and the log of errors while
  rows are read, which only the steward may see;
* :mod:`~dither.release.pipeline`: how far a release is, on a terminal or in a notebook.
"""
