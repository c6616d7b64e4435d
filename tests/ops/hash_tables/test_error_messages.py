"""Errors of the ops of lookup tables, which tables prevent for their users."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.hash_tables.sorted_keys import key_order, key_positions

CASES = {
    "keys of another dtype": (
        lambda: key_positions(df.constant(["a"]), df.constant([1])),
        DTypeError,
        "keys are int32, not string",
        "df.cast",
    ),
    "a matrix of keys": (
        lambda: key_order(df.constant([[1]])),
        InvalidArgumentError,
        r"not shape \(1, 1\)",
        "reshape",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    internal = CASES
    raised_in = ("ops/hash_tables/*.py",)
