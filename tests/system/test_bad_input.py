"""Invalid input has a clear error in both modes, and nothing else; unusual input has a result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import (
    DTypeError,
    DualflowError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
)

Function = Callable[..., Any]


def floats(*shape: int) -> Any:
    return df.constant(np.ones(shape, np.float32))


def ints(*values: int) -> Any:
    return df.constant(np.array(values, np.int32))


HUGE = 10_000_000

REFUSED: dict[str, tuple[Function, tuple[Any, ...], type[DualflowError], list[str]]] = {
    # shapes and ranks
    "shapes that do not broadcast": (
        lambda x, y: x + y,
        (floats(2, 3), floats(4, 5)),
        InvalidArgumentError,
        ["add", "(2, 3)", "(4, 5)", "reshape"],
    ),
    "matrices that do not fit": (
        lambda x, y: x @ y,
        (floats(2, 3), floats(4, 5)),
        InvalidArgumentError,
        ["matmul", "3 and 4", "transpose"],
    ),
    "a vector for a matrix": (
        df.matmul,
        (floats(3), floats(3)),
        InvalidArgumentError,
        ["matmul", "matrices"],
    ),
    "an axis that is not there": (
        lambda x: df.reduce_sum(x, 5),
        (floats(2),),
        InvalidArgumentError,
        ["axis 5", "rank 1", "-1..0"],
    ),
    "another number of elements": (
        lambda x: df.reshape(x, [4]),
        (floats(3),),
        InvalidArgumentError,
        ["reshape", "3 elements", "4"],
    ),
    "rows that do not join": (
        lambda x, y: df.concat([x, y], 0),
        (floats(2, 3), floats(2, 4)),
        InvalidArgumentError,
        ["concat", "axis 1"],
    ),
    "uneven parts": (lambda x: df.split(x, 3), (floats(4),), InvalidArgumentError, ["4", "3 equal parts"]),
    "an axis twice": (
        lambda x: df.transpose(x, [0, 0]),
        (floats(4, 4),),
        InvalidArgumentError,
        ["transpose", "(0, 0)"],
    ),
    "the place of nothing": (df.argmax, (floats(0),), InvalidArgumentError, ["argmax", "(0,)"]),
    "more indices than axes": (lambda x: x[0, 0], (floats(3),), InvalidArgumentError, ["2 indices", "(3,)"]),
    # dtypes and Python objects
    "bits of floats": (
        lambda x: df.bitwise.bitwise_and(x, x),
        (floats(3),),
        DTypeError,
        ["bitwise_and", "float32", "cast"],
    ),
    "floats as indices": (
        lambda x, i: df.gather(x, i),
        (floats(3), floats(2)),
        DTypeError,
        ["gather", "cast"],
    ),
    "a ragged list": (
        lambda x: df.add(x, [[1, 2], [3]]),
        (floats(2),),
        InvalidArgumentError,
        ["different lengths"],
    ),
    "a string": (lambda x: x + "a", (floats(2),), DTypeError, ["string", "to_number"]),
    "an object": (lambda x: x + object(), (floats(2),), DTypeError, ["object", "tensor"]),
    "nothing": (lambda x: x + None, (floats(2),), DTypeError, ["add: None", "give a number or a tensor"]),
    "a dtype that is none": (lambda x: df.cast(x, "flot32"), (floats(1),), DTypeError, ["flot32", "float32"]),
    "a number too large for the dtype": (
        lambda x: x + 2**40,
        (ints(1),),
        InvalidArgumentError,
        [str(2**40), "int32", "cast"],
    ),
    # sizes
    "a negative size": (
        lambda x: df.zeros([-1, 3]) + x,
        (floats(3),),
        InvalidArgumentError,
        ["negative", "-1"],
    ),
    "a negative depth": (lambda i: df.one_hot(i, -3), (ints(1),), InvalidArgumentError, ["negative", "-3"]),
    "a negative padding": (lambda x: df.pad(x, [[-1, 0]]), (floats(3),), InvalidArgumentError, ["pad", "-1"]),
    "more elements than addresses": (
        lambda x: df.zeros([10**10, 10**10]) + x,
        (floats(1),),
        ResourceExhaustedError,
        ["10000000000", "memory"],
    ),
    "axes next to an empty one that no strides reach": (
        lambda x: df.fill([0, 10**10, 10**10], 1.0) + x,
        (floats(1),),
        ResourceExhaustedError,
        ["10000000000", "memory"],
    ),
    "an empty tensor in a shape that no strides reach": (
        lambda x: df.reshape(x, [0, 2**62, 4]),
        (floats(0),),
        ResourceExhaustedError,
        [str(2**62), "memory"],
    ),
    "more than there is memory": (
        lambda x: df.zeros([10**6, HUGE]) + x,
        (floats(1),),
        ResourceExhaustedError,
        ["memory", "36.4 TiB"],
    ),
    "a huge result of small input": (
        lambda x: x[:, None] * x,
        (df.broadcast_to(1.0, [HUGE]),),
        ResourceExhaustedError,
        ["memory", "TiB"],
    ),
    "a huge value on the way": (
        lambda x: df.reduce_sum(df.cumsum(x[:, None] * x)),
        (df.broadcast_to(1.0, [HUGE]),),
        ResourceExhaustedError,
        ["memory", "TiB"],
    ),
    # known when it runs
    "an index beyond the end": (lambda x, i: df.gather(x, i), (floats(3), ints(0, 3)), OutOfRangeError, []),
    "a negative index": (lambda x, i: df.gather(x, i), (floats(3), ints(-1)), OutOfRangeError, []),
    "a tensor index beyond the end": (lambda x, i: x[i[0]], (floats(3), ints(3)), OutOfRangeError, []),
    "a place beyond the end": (
        lambda i: df.scatter_nd(i[:, None], floats(2), [3]),
        (ints(0, 9),),
        OutOfRangeError,
        [],
    ),
    "division of integers by zero": (
        lambda x, y: x // y,
        (ints(1, 2), ints(0, 1)),
        InvalidArgumentError,
        ["division by zero"],
    ),
    "remainder by zero": (
        lambda x, y: x % y,
        (ints(1, 2), ints(0, 1)),
        InvalidArgumentError,
        ["division by zero"],
    ),
    "an integer to a negative power": (
        df.pow,
        (ints(2), ints(-1)),
        InvalidArgumentError,
        ["negative power"],
    ),
    "a label without a class": (
        lambda x, y: df.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        (floats(2, 3), ints(0, 7)),
        InvalidArgumentError,
        ["label", "[0, 3)"],
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_is_refused_with_what_and_why(case: Any, mode: Callable[[Function], Function]) -> None:
    function, inputs, error, words = case
    with pytest.raises(error) as refusal:
        mode(function)(*inputs)
    for word in words:
        assert word in str(refusal.value)


@pytest.mark.parametrize("case", list(REFUSED.values())[-8:], ids=list(REFUSED)[-8:])
def test_errors_of_data_dependent_shapes_name_the_op_and_the_line(case: Any) -> None:
    """The compiled function raises at the call; the error leads to the line that called the op."""
    function, inputs, error, _ = case
    with pytest.raises(error) as refusal:
        df.function(lambda *xs: function(*xs), autograph=False)(*inputs)
    shown = "\n".join([str(refusal.value), *getattr(refusal.value, "__notes__", [])])
    assert Path(__file__).name in shown


def test_a_check_that_fails_names_its_op() -> None:
    with pytest.raises(OutOfRangeError, match=r"^gather: "):
        df.function(lambda x, i: df.gather(x * 2.0, i) + 1.0)(floats(3), ints(5))


def test_a_function_goes_on_after_an_error_at_run_time() -> None:
    f = df.function(lambda x, i: df.gather(x * 2.0, i))
    for _ in range(3):
        with pytest.raises(OutOfRangeError):
            f(floats(3), ints(9))
        assert f(floats(3), ints(2)).numpy().tolist() == [2.0]


def test_a_function_can_be_traced_again_after_an_error_while_tracing() -> None:
    f = df.function(lambda x, y: x @ y)
    for _ in range(2):
        with pytest.raises(InvalidArgumentError):
            f(floats(2, 3), floats(2, 3))
        assert f(floats(2, 3), floats(3, 2)).shape == (2, 2)


def test_too_many_arguments_are_a_type_error(mode: Callable[[Function], Function]) -> None:
    with pytest.raises(TypeError, match="argument"):
        mode(lambda x: x)(floats(1), floats(1))


def test_an_unknown_keyword_is_a_type_error(mode: Callable[[Function], Function]) -> None:
    with pytest.raises(TypeError, match="y"):
        mode(lambda x: x)(floats(1), y=floats(1))


# Odd input with an answer

LOWEST, HIGHEST = -(2**31), 2**31 - 1

ANSWERED: dict[str, tuple[Function, tuple[Any, ...], Any]] = {
    "integers overflow by wrapping": (lambda x: x * x + x, (ints(HIGHEST),), [LOWEST]),
    "the lowest integer by -1": (lambda x, y: x // y, (ints(LOWEST), ints(-1)), [LOWEST]),
    "the lowest integer's absolute value": (df.abs, (ints(LOWEST),), [LOWEST]),
    "a remainder of the lowest integer": (lambda x, y: x % y, (ints(LOWEST), ints(-1)), [0]),
    "floats that no integer holds": (
        lambda x: df.cast(x, df.int32),
        (df.constant([np.nan, np.inf, -np.inf, 1e20, -1e20]),),
        [0, HIGHEST, LOWEST, HIGHEST, LOWEST],
    ),
    "integers by zero as floats": (lambda x, y: x / y, (ints(1, 0), ints(0, 1)), [np.inf, 0.0]),
    "a shift beyond the width": (df.bitwise.left_shift, (ints(2), ints(100)), [0]),
    "the mean of nothing": (df.reduce_mean, (floats(0),), np.nan),
    "the sum of nothing": (df.reduce_sum, (floats(0, 3),), 0.0),
    "the product of nothing": (lambda x: df.reduce_prod(x, 0), (floats(0, 3),), [1.0, 1.0, 1.0]),
    "no rows of a product": (df.matmul, (floats(0, 3), floats(3, 2)), np.zeros((0, 2))),
    "a product over nothing": (df.matmul, (floats(2, 0), floats(0, 3)), np.zeros((2, 3))),
    "nothing joined to something": (
        lambda x, y: df.concat([x, y], 0),
        (floats(0, 2), floats(1, 2)),
        [[1.0, 1.0]],
    ),
    "nothing picked": (df.gather, (floats(3), ints()), np.zeros(0)),
    "a part beyond the end": (lambda x: x[5:], (floats(3),), np.zeros(0)),
}


@pytest.mark.parametrize("case", ANSWERED.values(), ids=ANSWERED.keys())
def test_odd_input_has_its_answer(case: Any, mode: Callable[[Function], Function]) -> None:
    function, inputs, expected = case
    np.testing.assert_array_equal(mode(function)(*inputs).numpy(), np.asarray(expected))
