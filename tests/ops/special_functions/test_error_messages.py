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
    "shapes that do not broadcast": (
        lambda: df.raw_ops.BroadcastGradientArgs(s0=[2], s1=[3]),
        InvalidArgumentError,
        r"\[2\] and \[3\] do not broadcast",
        "reshape",
    ),
    "a shape of unknown sizes": (
        lambda: df.function(
            lambda x: df.raw_ops.BroadcastGradientArgs(s0=df.shape(x), s1=[3]),
            input_signature=[df.TensorSpec([None])],
        )(df.ones([3])),
        InvalidArgumentError,
        "known while tracing",
        "integers",
    ),
    "a matrix of distinct elements": (
        lambda: df.raw_ops.UniqueWithCountsV2(x=[[1]], axis=[0]),
        InvalidArgumentError,
        r"a vector here, not \(1, 1\)",
        "reshape",
    ),
    "points in integers": (lambda: math.sobol_sample(1, 1, dtype=df.int32), DTypeError, "not int32", "cast"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/special_functions/*.py",)
