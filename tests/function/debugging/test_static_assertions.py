"""``df.debugging.assert_*`` of dtypes, ranks and shapes: checked before there are values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

D = df.debugging
X, Y, ONE = df.ones([2, 3]), df.ones([2]), df.constant(1.0)

HOLDS: dict[str, Any] = {
    "rank": lambda: D.assert_rank(X, 2),
    "a rank that is a tensor": lambda: D.assert_rank(X, df.constant(2)),
    "rank or more": lambda: D.assert_rank_at_least(X, 1),
    "one of ranks": lambda: D.assert_rank_in(X, [0, 2]),
    "dtype": lambda: D.assert_type(X, df.float32),
    "dtype of a number": lambda: D.assert_type(1, df.int32),
    "integers": lambda: D.assert_integer([1, 2]),
    "a list": lambda: D.assert_proper_iterable([1]),
    "a dict": lambda: D.assert_proper_iterable({1: 2}),
    "sizes by name": lambda: D.assert_shapes([(X, ("N", "M")), (Y, ("N",))]),
    "sizes in a string": lambda: D.assert_shapes([(X, "NM"), (Y, "N")]),
    "any size": lambda: D.assert_shapes([(X, (None, 3)), (X, ("N", ".")), (X, None)]),
    "any axes": lambda: D.assert_shapes([(X, (..., "M")), (X, ("*", 3)), (ONE, ("...",))]),
    "a scalar": lambda: D.assert_shapes([(ONE, ()), (ONE, (1,)), (df.ones([1]), ())]),
    "nothing": lambda: D.assert_shapes([]),
}


@pytest.mark.parametrize("case", HOLDS)
def test_a_true_assertion_returns_none(case: str) -> None:
    assert HOLDS[case]() is None


def test_a_scalar_is_given_back() -> None:
    assert D.assert_scalar(3.0).numpy() == 3.0


def test_the_dtype_of_all_is_given_back() -> None:
    assert D.assert_same_float_dtype() is df.float32
    assert D.assert_same_float_dtype([X, None, Y]) is df.float32
    assert D.assert_same_float_dtype([], df.float64) is df.float64


def test_numbers_are_numeric() -> None:
    assert D.is_numeric_tensor(X)
    assert D.is_numeric_tensor(df.Variable(1))
    assert not D.is_numeric_tensor(df.constant(True))
    assert not D.is_numeric_tensor(np.ones(2))


def test_a_trace_is_refused() -> None:
    @df.function
    def f(x: Any) -> Any:
        D.assert_rank(x, 1)
        D.assert_shapes([(x, ("N",)), (x * 2, ("N",))])
        return x

    f.get_concrete_function(df.TensorSpec([None]))
    with pytest.raises(InvalidArgumentError, match="rank 1"):
        f.get_concrete_function(df.TensorSpec([None, 2]))


CASES: dict[str, tuple[Any, type[Exception], str, str]] = {
    "rank": (
        lambda: D.assert_rank(X, 1, "rows"),
        InvalidArgumentError,
        "^rows. Expected a tensor of rank 1",
        r"shape is \(2, 3\)",
    ),
    "rank or more": (
        lambda: D.assert_rank_at_least(X, 3),
        InvalidArgumentError,
        "rank 3 or more",
        r"shape is \(2, 3\)",
    ),
    "one of ranks": (
        lambda: D.assert_rank_in(X, [0, 1]),
        InvalidArgumentError,
        "rank 0 or 1",
        r"shape is \(2, 3\)",
    ),
    "a scalar": (lambda: D.assert_scalar(X), InvalidArgumentError, "rank 0", r"shape is \(2, 3\)"),
    "dtype": (
        lambda: D.assert_type(X, df.int32, "x"),
        DTypeError,
        "^x. .* not float32",
        "df.cast",
    ),
    "integers": (lambda: D.assert_integer(X), DTypeError, "not float32", "df.cast"),
    "two dtypes": (
        lambda: D.assert_same_float_dtype([X, df.cast(Y, df.float64)]),
        InvalidArgumentError,
        "not float64",
        "df.cast",
    ),
    "no floats": (
        lambda: D.assert_same_float_dtype([df.constant(1)]),
        InvalidArgumentError,
        "not int32",
        "df.cast",
    ),
    "a tensor for a list": (lambda: D.assert_proper_iterable(X), DTypeError, "EagerTensor", "into a list"),
    "a string for a list": (lambda: D.assert_proper_iterable("ab"), DTypeError, "type str", "into a list"),
    "a number for a list": (lambda: D.assert_proper_iterable(3), DTypeError, "type int", "into a list"),
    "a size by name": (
        lambda: D.assert_shapes([(X, ("N", "M")), (Y, ("M",))], message="x, y"),
        InvalidArgumentError,
        r"^x, y. Axis 0 of a tensor of shape \(2,\)",
        r"size 3, as 'M' has in \(2, 3\)",
    ),
    "a size": (
        lambda: D.assert_shapes([(X, (2, 4))]),
        InvalidArgumentError,
        "Axis 1",
        "size 4, as specified",
    ),
    "axes": (
        lambda: D.assert_shapes([(X, ("N",))]),
        InvalidArgumentError,
        r"shape \(2, 3\)",
        "should have 1 axes",
    ),
    "too few axes": (
        lambda: D.assert_shapes([(Y, (..., "N", "M"))]),
        InvalidArgumentError,
        r"\(2,\)",
        "2 axes or more",
    ),
    "dots in the middle": (
        lambda: D.assert_shapes([(X, ("N", ...))]),
        InvalidArgumentError,
        "Ellipsis",
        "at the beginning",
    ),
    "no shape": (lambda: D.assert_shapes([(X, 3)]), InvalidArgumentError, "sequence of sizes", "not 3"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("function/debugging/static_assertions.py",)
