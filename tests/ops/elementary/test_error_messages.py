"""Errors of quotients and conversions: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

V, N, C, B = df.ones([3]), df.constant([1, 2, 3]), df.constant([1j]), df.constant([True])
math = df.math

CASES = {
    "a real quotient of integers": (lambda: df.realdiv(N, N), DTypeError, "not int32", "df.divide"),
    "a vector times a vector": (lambda: df.scalar_mul(V, V), InvalidArgumentError, r"\(3,\)", "df.multiply"),
    "a neighbour of a complex number": (lambda: math.nextafter(C, C), DTypeError, "not complex128", "cast"),
    "the angle of an integer": (lambda: math.angle(N), DTypeError, "not int32", "cast"),
    "a polynomial of a tensor": (lambda: math.polyval(V, 1.0), DTypeError, "not EagerTensor", "unstack"),
    "a sum of another dtype": (
        lambda: math.accumulate_n([V], tensor_dtype=df.int32),
        DTypeError,
        "int32 here",
        "not float32",
    ),
    "a sum of another shape": (
        lambda: math.accumulate_n([V], shape=[2]),
        InvalidArgumentError,
        r"\(2,\) here",
        r"not \(3,\)",
    ),
    "saturating bools": (lambda: df.saturate_cast(V, df.bool), DTypeError, "not bools", "comparison"),
    "the bits of a bool": (lambda: df.bitcast(B, df.uint8), DTypeError, "bool as uint8", "cast"),
    "bits that fill no element": (
        lambda: df.bitcast(V, df.float64),
        InvalidArgumentError,
        r"2 elements of float32",
        "size 2",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/elementary/*.py",)
