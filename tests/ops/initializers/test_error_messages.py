"""Errors of initializers: each states what is wrong and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

init = df.initializers

CASES = {
    "a dynamic size": (
        lambda: init.Zeros()([None, 2]),
        InvalidArgumentError,
        r"\[None, 2\]",
        "must be known",
    ),
    "integers of a normal distribution": (
        lambda: init.RandomNormal()([2], df.int32),
        DTypeError,
        "not int32",
        "df.float32",
    ),
    "the identity of a cube": (
        lambda: init.Identity()([2, 2, 2]),
        InvalidArgumentError,
        r"\(2, 2, 2\)",
        "two sizes",
    ),
    "an orthogonal vector": (
        lambda: init.Orthogonal()([2]),
        InvalidArgumentError,
        r"\(2,\)",
        "two sizes or more",
    ),
    "a scale": (lambda: init.VarianceScaling(-1.0), InvalidArgumentError, "not -1.0", "above 0"),
    "a mode": (lambda: init.VarianceScaling(mode="in"), InvalidArgumentError, "not 'in'", "fan_avg"),
    "a distribution": (
        lambda: init.VarianceScaling(distribution="normal"),
        InvalidArgumentError,
        "not 'normal'",
        "untruncated_normal",
    ),
    "a name": (lambda: init.get("glorot"), InvalidArgumentError, "'glorot'", "GlorotUniform"),
    "no initializer": (lambda: init.get(3), DTypeError, "not 3", "a function of a shape"),
    "one of one's own": (lambda: init.Initializer()([2]), NotImplementedError, "__call__", "defines"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    internal = ("one of one's own",)
    raised_in = ("ops/initializers/*.py",)
