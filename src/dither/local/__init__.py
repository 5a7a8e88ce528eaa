"""Reports without a trusted collector: the local model of differential privacy.

>>> import dither as dp
>>> p = dp.local.SubsetSelection(categories=["yes", "no", "neither"], epsilon=1)
>>> reports = p.privatize(["yes", "no", "yes"])
>>> p.estimate(reports).n
3
>>> dp.local.best(categories=1024, epsilon=1, max_bits=16).protocol
ProjectiveGeometryResponse(categories=1024, epsilon=1)
"""

from dither.local.finite_fields import LocalHashing, ProjectiveGeometryResponse
from dither.local.hadamard_response import HadamardResponse
from dither.local.heavy_hitters import HeavyHitter, HeavyHitters, HeavyHitterSearch
from dither.local.protocol import LocalProtocol, Server
from dither.local.recommendation import Recommendation, best
from dither.local.repetition import DeviceBudget, RepetitionCost, repetition_cost
from dither.local.reports import LocalFrequencies, Reports
from dither.local.sets import PaddedSets
from dither.local.sketch import CountMeanSketch, HadamardCountMeanSketch
from dither.local.subset_selection import RandomizedResponse, SubsetSelection, UnaryEncoding
from dither.local.windows import Distribution, LocalDistribution, LocalMean, Mean
from dither.public_module import name_by_home as _name_by_home

__all__ = [
    "CountMeanSketch",
    "DeviceBudget",
    "Distribution",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "HeavyHitter",
    "HeavyHitterSearch",
    "HeavyHitters",
    "LocalDistribution",
    "LocalFrequencies",
    "LocalHashing",
    "LocalMean",
    "LocalProtocol",
    "Mean",
    "PaddedSets",
    "ProjectiveGeometryResponse",
    "RandomizedResponse",
    "Recommendation",
    "RepetitionCost",
    "Reports",
    "Server",
    "SubsetSelection",
    "UnaryEncoding",
    "best",
    "repetition_cost",
]

__dir__ = _name_by_home(__name__, __all__, globals())
