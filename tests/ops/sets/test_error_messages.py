"""Errors of sets: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

S = df.sparse.from_dense([[1, 2]])
sets = df.sets

CASES = {
    "sets of one axis": (lambda: sets.union([1, 2], [3]), InvalidArgumentError, r"\(2,\)", "reshape"),
    "other sets": (lambda: sets.union([[1]], [[1], [2]]), InvalidArgumentError, r"\(1, 1\)", "same sizes"),
    "sets of other dtypes": (
        lambda: sets.union([[1]], [[1.0]]),
        DTypeError,
        "int32 and float32",
        "one dtype",
    ),
    "sets of complex numbers": (lambda: sets.union([[1j]], [[1j]]), DTypeError, "real numbers", "complex128"),
    "a dense set after a sparse one": (lambda: sets.union(S, [[1]]), DTypeError, "dense", "first"),
    "the size of dense sets": (lambda: sets.size([[1]]), DTypeError, "SparseTensor", "from_dense"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/sets/*.py",)
