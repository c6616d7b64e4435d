"""Errors of counting: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

X = df.constant([0, 1, 1])
math, histogram = df.math, df.histogram_fixed_width

CASES = {
    "counts along another axis": (
        lambda: math.bincount(X, axis=1),
        InvalidArgumentError,
        "axis 0 or -1",
        "not 1",
    ),
    "weights and whether": (
        lambda: math.bincount(X, [1, 1, 1], binary_output=True),
        InvalidArgumentError,
        "weights or",
        "not both",
    ),
    "weights of another rank": (
        lambda: math.bincount(X, [[1, 1, 1]]),
        InvalidArgumentError,
        r"\(1, 3\)",
        "one for each",
    ),
    "counts of floats": (lambda: math.bincount([1.5]), DTypeError, "not float32", "cast"),
    "counts of a negative number": (
        lambda: math.bincount([-1]),
        InvalidArgumentError,
        "0 or more",
        "bincount counts",
    ),
    "rows of a cube": (
        lambda: math.bincount([[[1]]], axis=-1),
        InvalidArgumentError,
        r"\(1, 1, 1\)",
        "reshape",
    ),
    "a histogram of complex numbers": (lambda: histogram([1j], [0, 1]), DTypeError, "real numbers", "cast"),
    "an interval of three ends": (
        lambda: histogram(X, [0, 1, 2]),
        InvalidArgumentError,
        r"\(3,\)",
        r"\[low, high\]",
    ),
    "no parts": (lambda: histogram(X, [0, 1], 0), InvalidArgumentError, "nbins is 0", "1 part or more"),
    "an interval backwards": (
        lambda: histogram(X, [1, 0]),
        InvalidArgumentError,
        "not nan",
        "the lower one first",
    ),
    "labels for other predictions": (
        lambda: math.confusion_matrix([[1, 2]], [[1, 2]]),
        InvalidArgumentError,
        r"\(1, 2\)",
        "one label and one",
    ),
    "a label that is no class": (
        lambda: math.confusion_matrix([2], [0], 2),
        InvalidArgumentError,
        r"num_classes \(2\)",
        "0 or more",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/counting/*.py",)
