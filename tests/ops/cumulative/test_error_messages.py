"""Errors of running products and sums: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

V = df.constant([True])


def gradient(x):
    """The gradient of running products along an axis of a dynamic size."""
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.math.cumprod(x)
    return tape.gradient(y, x)


CASES = {
    "products of bools": (lambda: df.math.cumprod(V), DTypeError, "bool", "cast"),
    "no axis": (lambda: df.math.cumprod(1.0), InvalidArgumentError, "rank 0", "out of range"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/cumulative/*.py",)
