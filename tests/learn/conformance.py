"""Checks of scikit-learn that ask for what a private estimator must not do, and why; all others pass."""

from __future__ import annotations

DEPARTURES = {
    "check_estimators_empty_data_messages": "whether there is a record is private: no rows are no error",
    "check_supervised_y_no_nan": "whether a target is missing is private: it counts as the middle of label_bounds",
    "check_dtype_object": "dtype object declares no type, and is refused whatever it holds",
}


def failed(found):
    """The names of the checks that failed and that are none of these."""
    names = [check["check_name"] for check in found if check["status"] == "failed"]
    return [name for name in names if name not in DEPARTURES]
