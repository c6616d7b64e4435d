"""Elements of a TensorArray that differ in size: loops and branches carry them as eager arrays hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

N = 3


def first_rows(x: Any) -> Any:
    array = df.TensorArray(df.float32, N, infer_shape=False, clear_after_read=False)
    for i in df.range(N):
        array = array.write(N - 1 - i, x[:i])
    return array


def joined(x: Any) -> Any:
    return first_rows(x).concat() * 2.0


def read_in_a_loop(x: Any) -> Any:
    array, total = first_rows(x), df.zeros([])
    for i in df.range(N):
        total += df.reduce_sum(array.read(i) ** 2) * df.cast(i + 1, df.float32)
    return total


def split_and_read_in_a_loop(x: Any) -> Any:
    half = df.shape(x)[0] // 2
    array = df.TensorArray(df.float32, 2, infer_shape=False).split(x, [half, df.shape(x)[0] - half])
    total = df.zeros([2])
    for i in df.range(2):
        total = total * 3.0 + df.reduce_sum(array.read(i), 0)
    return total


def joined_of_dynamic_size(x: Any) -> Any:
    array = df.TensorArray(df.float32, 1, dynamic_size=True, infer_shape=False).write(0, x[:1])
    for i in df.range(1, df.shape(x)[0]):
        array = array.write(i, x[i:] * 2.0)
    return array.concat()


def rewritten_by_while_loop(x: Any) -> Any:
    array = df.TensorArray(df.float32, 2, infer_shape=False).write(0, df.ones([2, 2])).write(1, x)

    def body(i: Any, array: Any) -> Any:
        return i + 1, array.write(i % 2, df.concat([x[:i], x], 0))

    return df.while_loop(lambda i, _: i < N, body, [df.constant(0), array])[1].concat()


def stacked_where_sizes_agree(x: Any) -> Any:
    array = df.TensorArray(df.float32, N, infer_shape=False)
    for i in df.range(N):
        array = array.write(i, x[x[:, 0] > 0.0] * df.cast(i, df.float32))
    return df.concat([array.stack(), array.gather([1])], 0)


def written_in_one_branch(x: Any) -> Any:
    array = df.TensorArray(df.float32, 2, infer_shape=False)
    if df.reduce_sum(x) > 0.0:
        array = array.write(0, x)
    return array.write(0, x[1:]).write(1, x).concat()


def created_in_both_branches(x: Any) -> Any:
    if df.reduce_sum(x) > 0.0:
        array = df.TensorArray(df.float32, 2, infer_shape=False).write(0, x).write(1, x[1:])
    else:
        array = df.TensorArray(df.float32, 2, infer_shape=False).unstack(df.ones([2, 3, 2]))
    return array.concat() * df.reduce_sum(x)


def of_another_static_shape_in_each_branch(x: Any) -> Any:
    array = df.TensorArray(df.float32, 2, infer_shape=False)
    if df.reduce_sum(x) > 0.0:
        array = array.write(0, x[0]).write(1, x[-1])
    else:
        array = array.write(1, df.repeat(x[0], 2)).write(0, df.ones([4]))
    return array.concat() * df.reduce_sum(x)


def partly_written_before_a_loop(x: Any) -> Any:
    array = df.TensorArray(df.float32, N, infer_shape=False).write(0, df.ones([3, 2]))
    for i in df.range(1, N):
        array = array.write(i, df.ones([2, i]) * df.reduce_sum(x))
    return array.read(N - 1)


PROGRAMS = [
    created_in_both_branches,
    of_another_static_shape_in_each_branch,
    partly_written_before_a_loop,
    joined,
    read_in_a_loop,
    split_and_read_in_a_loop,
    joined_of_dynamic_size,
    rewritten_by_while_loop,
    stacked_where_sizes_agree,
    written_in_one_branch,
]


def with_slope(program: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def value_and_slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return y, tape.gradient(y, x, unconnected_gradients="zero")

    return value_and_slope


@pytest.mark.parametrize("program", PROGRAMS)
def test_unequal_elements_have_one_trace(program: Callable[[Any], Any]) -> None:
    compiled = df.function(with_slope(program), input_signature=[df.TensorSpec([None, 2])])
    for rows in (3, 1, 2, 31):
        x = df.random.stateless_normal([rows, 2], [rows, 2])
        for result, expected in zip(compiled(x), with_slope(program)(x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.llvm  # the one backend that compiles data-dependent sizes
def test_unequal_elements_have_one_native_program() -> None:
    compiled = df.function(joined, input_signature=[df.TensorSpec([None, 2])], strict=True)
    for rows in (3, 1, 31):
        compiled(df.ones([rows, 2]))
    (concrete,) = compiled.concrete_functions
    assert len(concrete._specialisations) == 1


def test_branches_of_cond_return_an_array_that_one_of_them_writes() -> None:
    def program(x: Any) -> Any:
        array = df.TensorArray(df.float32, 2)
        array = df.cond(df.reduce_sum(x) > 0.0, lambda: array.write(0, x), lambda: array)
        return array.write(1, -x).stack()

    compiled = df.function(program, input_signature=[df.TensorSpec([None])])
    for x in (df.constant([1.0, 2.0]), df.constant([-1.0]), df.zeros([0])):
        assert compiled(x).numpy().tolist() == program(x).numpy().tolist()


def test_unwritten_elements_of_a_declared_shape_are_zeros() -> None:
    def program(x: Any) -> Any:
        return df.TensorArray(df.float32, 2, infer_shape=False, element_shape=[2]).write(1, x).stack()

    assert df.function(program)(df.ones([2])).numpy().tolist() == [[0, 0], [1, 1]]


def test_branches_of_cond_return_new_arrays() -> None:
    def program(x: Any) -> Any:
        array = df.cond(x > 0.0, lambda: df.TensorArray(df.float32, 2), lambda: df.TensorArray(df.float32, 2))
        return array.write(0, x).write(1, -x).stack()

    assert df.function(program)(df.constant(1.0)).numpy().tolist() == [1, -1]
