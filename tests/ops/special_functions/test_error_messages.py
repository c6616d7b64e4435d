"""Errors of special functions: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

C = df.constant([1j])
math = df.math

CASES = {
    "the logarithm of gamma of a complex number": (
        lambda: math.lgamma(C),
        DTypeError,
        "lgamma.*takes real numbers",
        "cast",
    ),
    "an incomplete function of a complex one": (
        lambda: math.igamma(1.0, C),
        DTypeError,
        "not complex128",
        "cast",
    ),
    "points of no dimension": (
        lambda: math.sobol_sample(0, 1),
        InvalidArgumentError,
        "1 in 0",
        "1 dimension or more",
    ),
    "no points": (lambda: math.sobol_sample(1, 0), InvalidArgumentError, "0 in 1", "1 point or more"),
    "points in integers": (lambda: math.sobol_sample(1, 1, dtype=df.int32), DTypeError, "not int32", "cast"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/special_functions/*.py",)
