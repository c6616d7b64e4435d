"""Errors of searches and permutations: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df

Invalid, Wrong = df.errors.InvalidArgumentError, df.errors.DTypeError
V, M = df.ones([3]), df.ones([2, 3])
math = df.math
OPEN = df.function(lambda x: math.top_k(x, 2).indices, input_signature=[df.TensorSpec([None])])

CASES = {
    "the top of a scalar": (lambda: math.top_k(1.0), Invalid, "top_k takes rows", "df.reshape"),
    "distinct complex numbers": (lambda: df.unique([1j]), Wrong, "not complex128", "the parts"),
    "distinct rows": (lambda: df.unique(M), Invalid, r"\(2, 3\)", "reshape"),
    "places in short integers": (lambda: df.unique([1], df.int16), Wrong, "not int16", "int32 or int64"),
    "another side": (lambda: df.searchsorted(V, V, "middle"), Invalid, "'middle'", "'left' or 'right'"),
    "positions in floats": (
        lambda: df.searchsorted(V, V, out_type=df.float32),
        Wrong,
        "not float32",
        "int32 or int64",
    ),
    "a search in complex numbers": (lambda: df.searchsorted([1j], [1j]), Wrong, "not complex128", "cast"),
    "a search in other rows": (lambda: df.searchsorted(M, V), Invalid, r"\(2, 3\)", "same sizes"),
    "targets in floats": (lambda: math.in_top_k(V, M, 1), Wrong, "float32 and float32", "integer targets"),
    "too few targets": (lambda: math.in_top_k([1], M, 1), Invalid, r"\(1,\)", "a target for each row"),
    "too many of the largest": (lambda: math.top_k(V, 4), Invalid, r"top_k\(4\)", r"k is 0\.\.3"),
    "the largest complex number": (lambda: math.top_k([1j]), Wrong, "not complex128", "cast"),
    "more than a short row has": (lambda: OPEN(df.ones([1])), Invalid, "2 of the 1", r"0\.\.1"),
    "more than there are": (lambda: math.approx_max_k(V, 4), Invalid, "4 of the 3", r"0\.\.3"),
    "a permutation of rows": (lambda: math.invert_permutation([[0]]), Invalid, r"\(1, 1\)", "a vector"),
    "a number twice": (lambda: math.invert_permutation([0, 0]), Invalid, "each of 0, 1", "once"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/ordering/*.py",)
