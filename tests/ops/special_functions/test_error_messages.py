"""Errors of special functions: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df

Invalid, Wrong = df.errors.InvalidArgumentError, df.errors.DTypeError
C = df.constant([1j])
math = df.math

CASES = {
    "the logarithm of gamma of a complex number": (
        lambda: math.lgamma(C),
        Wrong,
        "lgamma.*takes real numbers",
        "cast",
    ),
    "an incomplete function of a complex one": (
        lambda: math.igamma(1.0, C),
        Wrong,
        "not complex128",
        "cast",
    ),
    "points of no dimension": (lambda: math.sobol_sample(0, 1), Invalid, "1 in 0", "1 dimension or more"),
    "no points": (lambda: math.sobol_sample(1, 0), Invalid, "0 in 1", "1 point or more"),
    "points in integers": (lambda: math.sobol_sample(1, 1, dtype=df.int32), Wrong, "not int32", "cast"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/special_functions/*.py",)
