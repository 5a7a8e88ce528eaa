"""The numbers of the protocols in the byte format of reports. A number is never given to another protocol."""

from __future__ import annotations

RANDOMIZED_RESPONSE = 1
SUBSET_SELECTION = 2
UNARY_ENCODING = 3
LOCAL_HASHING = 4
HADAMARD_RESPONSE = 5
PROJECTIVE_GEOMETRY_RESPONSE = 6
COUNT_MEAN_SKETCH = 7
HADAMARD_COUNT_MEAN_SKETCH = 8
MEAN = 16
DISTRIBUTION = 17
PADDED_SETS = 18

_NAMES = {
    RANDOMIZED_RESPONSE: "RandomizedResponse",
    SUBSET_SELECTION: "SubsetSelection",
    UNARY_ENCODING: "UnaryEncoding",
    LOCAL_HASHING: "LocalHashing",
    HADAMARD_RESPONSE: "HadamardResponse",
    PROJECTIVE_GEOMETRY_RESPONSE: "ProjectiveGeometryResponse",
    COUNT_MEAN_SKETCH: "CountMeanSketch",
    HADAMARD_COUNT_MEAN_SKETCH: "HadamardCountMeanSketch",
    MEAN: "Mean",
    DISTRIBUTION: "Distribution",
    PADDED_SETS: "PaddedSets",
}


def protocol_name(code: int) -> str:
    """The name of the protocol with this number.

    >>> protocol_name(2), protocol_name(99)
    ('SubsetSelection', 'protocol 99')
    """
    return _NAMES.get(code, f"protocol {code}")
