"""Errors of searches and permutations: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

V, M = df.ones([3]), df.ones([2, 3])
math = df.math
OPEN = df.function(lambda x: math.top_k(x, 2).indices, input_signature=[df.TensorSpec([None])])

CASES = {
    "the top of a scalar": (lambda: math.top_k(1.0), InvalidArgumentError, "top_k takes rows", "df.reshape"),
    "distinct complex numbers": (lambda: df.unique([1j]), DTypeError, "not complex128", "the parts"),
    "distinct rows": (lambda: df.unique(M), InvalidArgumentError, r"\(2, 3\)", "reshape"),
    "places in short integers": (lambda: df.unique([1], df.int16), DTypeError, "not int16", "int32 or int64"),
    "another side": (
        lambda: df.searchsorted(V, V, "middle"),
        InvalidArgumentError,
        "'middle'",
        "'left' or 'right'",
    ),
    "positions in floats": (
        lambda: df.searchsorted(V, V, out_type=df.float32),
        DTypeError,
        "not float32",
        "int32 or int64",
    ),
    "a search in complex numbers": (
        lambda: df.searchsorted([1j], [1j]),
        DTypeError,
        "not complex128",
        "cast",
    ),
    "a search in other rows": (
        lambda: df.searchsorted(M, V),
        InvalidArgumentError,
        r"\(2, 3\)",
        "same sizes",
    ),
    "targets in floats": (
        lambda: math.in_top_k(V, M, 1),
        DTypeError,
        "float32 and float32",
        "integer targets",
    ),
    "too few targets": (
        lambda: math.in_top_k([1], M, 1),
        InvalidArgumentError,
        r"\(1,\)",
        "a target for each row",
    ),
    "too many of the largest": (
        lambda: math.top_k(V, 4),
        InvalidArgumentError,
        r"top_k\(4\)",
        r"k is 0\.\.3",
    ),
    "the largest complex number": (lambda: math.top_k([1j]), DTypeError, "not complex128", "cast"),
    "more than a short row has": (lambda: OPEN(df.ones([1])), InvalidArgumentError, "2 of the 1", r"0\.\.1"),
    "more than there are": (lambda: math.approx_max_k(V, 4), InvalidArgumentError, "4 of the 3", r"0\.\.3"),
    "a permutation of rows": (
        lambda: math.invert_permutation([[0]]),
        InvalidArgumentError,
        r"\(1, 1\)",
        "a vector",
    ),
    "a number twice": (lambda: math.invert_permutation([0, 0]), InvalidArgumentError, "each of 0, 1", "once"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/ordering/*.py",)
