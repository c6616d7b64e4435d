"""The array class: its attributes, operators with tensors, and its passage through tapes and traces."""

from __future__ import annotations

import array
import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import dualflow as df
import dualflow.array_api as xp

A = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
BINARY = [
    *[operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod],
    *[operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne],
]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("function", BINARY)
@pytest.mark.parametrize(
    "other", [2.0, 3, np.array([2.0, 3.0, 4.0]), df.constant([2.0, 3.0, 4.0], df.float64)]
)
def test_an_operator_with_anything_gives_an_array(function: Any, other: Any) -> None:
    x = xp.asarray(A)
    for result, expected in (
        (function(x, other), function(A, np.asarray(other))),
        (function(xp.asarray(other), A), function(np.asarray(other), A)),
    ):
        assert isinstance(result, xp.Array)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("function", BINARY)
def test_a_python_number_as_left_operand(function: Any) -> None:
    np.testing.assert_array_equal(function(2.0, xp.asarray(A)), function(2.0, A))


@pytest.mark.parametrize("function", BITS)
def test_operators_of_bits(function: Any) -> None:
    x, y = np.array([6, 5, 12]), np.array([3, 1, 2])
    np.testing.assert_array_equal(function(xp.asarray(x), xp.asarray(y)), function(x, y))
    np.testing.assert_array_equal(function(xp.asarray(x), 2), function(x, 2))
    np.testing.assert_array_equal(function(12, xp.asarray(y)), function(12, y))


def test_signs_powers_and_products() -> None:
    x = xp.asarray(A)
    np.testing.assert_array_equal(-x, -A)
    np.testing.assert_array_equal(+x, A)
    np.testing.assert_array_equal(abs(x), abs(A))
    np.testing.assert_array_equal(~(x > 0), ~(A > 0))
    np.testing.assert_array_equal(x**2, A**2)
    np.testing.assert_array_equal(2.0**x, 2.0**A)
    np.testing.assert_array_equal(x @ x.T, A @ A.T)
    np.testing.assert_array_equal(x @ np.ones(3), A @ np.ones(3))
    np.testing.assert_array_equal(np.ones(2) @ x, np.ones(2) @ A)


def test_other_objects_may_answer_for_an_operator() -> None:
    class Other:
        def __radd__(self, other: Any) -> str:
            return "other"

    assert xp.ones(1) + Other() == "other"
    assert (xp.ones(1) == "text") is False


def test_a_division_by_infinity_is_the_standards() -> None:
    result = xp.asarray([xp.inf, -xp.inf, 1.0, -1.0, xp.nan]) // xp.asarray([2.0, 2.0, -xp.inf, xp.inf, 1.0])
    np.testing.assert_array_equal(result, [np.inf, -np.inf, -0.0, -0.0, np.nan])
    assert xp.signbit(result).tolist()[2:4] == [True, True]


def test_python_numbers_have_the_default_dtypes() -> None:
    assert [xp.asarray(n).dtype for n in (True, 1, 1.0, 1j)] == [xp.bool, xp.int64, xp.float64, xp.complex128]
    assert [xp.ones(1).dtype, xp.arange(2).dtype, xp.full(1, 2).dtype] == [xp.float64, xp.int64, xp.int64]
    assert (xp.asarray([1]) * 0.5).dtype == xp.float64
    assert (xp.ones(1, dtype=xp.float32) * 0.1).dtype == xp.float32
    assert (xp.ones(1, dtype=xp.float32) * 1j).dtype == xp.complex64
    assert xp.sqrt(xp.asarray([4])).dtype == xp.float64


def test_attributes_of_an_array() -> None:
    x = xp.asarray(A)
    assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((2, 3), 2, 6, xp.float64, 2)
    assert x.device == df.constant(1).device
    assert x.to_device(x.device).tolist() == x.to_device("cpu").tolist() == A.tolist()
    assert x.T.shape == x.mT.shape == (3, 2)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2023.12") is xp
    assert xp.__array_api_version__ == "2024.12"
    assert repr(x) == "Array([[ 1., -2.,  3.],\n       [ 4.,  5., -6.]], dtype=float64)"
    assert [row.tolist() for row in x] == A.tolist()


def test_one_element_is_a_number() -> None:
    x = xp.asarray([3])
    assert (int(x), float(x), complex(x), bool(x), [5, 6, 7, 8][x[0]]) == (3, 3.0, 3 + 0j, True, 8)


def test_a_copy_and_what_pickle_restores_are_arrays_of_their_own() -> None:
    x = xp.asarray([1, 2])
    copies = [copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), xp.asarray(x, copy=True)]
    x[0] = 9
    assert [y.tolist() for y in copies] == [[1, 2]] * 4


# Tensors


@pytest.mark.parametrize("make", [df.constant, df.Variable])
def test_tensors_and_variables_have_the_namespace(make: Any) -> None:
    x = make([1.0, 4.0])
    assert x.__array_namespace__() is xp
    assert x.to_device(x.device) is x
    assert xp.sqrt(x).tolist() == [1.0, 2.0]
    assert xp.asarray(x).dtype == xp.float32


def test_functions_of_dualflow_take_arrays() -> None:
    x, t = xp.asarray([1.0, 4.0]), df.constant([1.0, 2.0], df.float64)
    for result, expected in (
        (df.sqrt(x), [1, 2]),
        (df.add(t, x), [2, 6]),
        (t * x, [1, 8]),
        (df.reduce_sum(x), 5),
        (df.concat([x, t], 0), [1, 4, 1, 2]),
        (df.stack([x, t]), [[1, 4], [1, 2]]),
        (df.reshape(x, [2, 1]), [[1], [4]]),
        (df.gather(t, xp.asarray([1, 0])), [2, 1]),
        (t[xp.asarray([1, 0])], [2, 1]),
        (t[xp.asarray([True, False])], [1]),
        (df.convert_to_tensor(x), [1, 4]),
        (df.cast(x, df.int32), [1, 4]),
    ):
        assert isinstance(result, df.Tensor)
        np.testing.assert_array_equal(result, expected)


def test_dtypes_are_equal_by_any_name() -> None:
    assert xp.float32 == df.float32 == np.float32
    assert xp.asarray([1.0], dtype="float32").dtype == xp.float32


# Tapes


def test_an_array_is_a_source_and_a_target() -> None:
    x = xp.asarray([1.0, 2.0, 3.0])
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        loss = xp.sum(y)
    gradient = tape.gradient(loss, {"x": x})["x"]
    assert isinstance(gradient, xp.Array)
    assert gradient.tolist() == [2.0, 4.0, 6.0]
    assert tape.gradient(loss, xp.ones(3)) is None
    np.testing.assert_array_equal(tape.jacobian(y, x), np.diag([2.0, 4.0, 6.0]))


def test_gradients_of_higher_orders() -> None:
    x = df.Variable([1.0, 2.0])
    with df.GradientTape() as outer:
        with df.GradientTape() as inner:
            y = xp.sum(x**3)
        slope = inner.gradient(y, x)
    assert outer.gradient(slope, x).numpy().tolist() == [6.0, 12.0]


# Traced functions


def test_an_array_comes_out_of_a_function_as_it_goes_in() -> None:
    @df.function
    def both(x: Any) -> Any:
        return {"array": xp.asarray(x) + 1, "tensor": df.convert_to_tensor(x) + 1}

    for value in (xp.ones(2), df.ones([2])):
        result = both(value)
        assert isinstance(result["array"], xp.Array)
        assert isinstance(result["tensor"], df.Tensor)
        assert result["array"].tolist() == result["tensor"].numpy().tolist() == [2.0, 2.0]


def test_a_function_is_machine_code_and_traced_once() -> None:
    @df.function
    def standardised(x: Any) -> Any:
        xp = x.__array_namespace__()
        x = xp.asarray(x)
        y = (x - xp.mean(x, axis=0)) / xp.std(x, axis=0, correction=1)
        y[y > 1] = 1.0
        return xp.concat([y, xp.max(xp.flip(y), axis=0, keepdims=True)], axis=0)

    x = np.random.default_rng(0).normal(size=(50, 3))
    expected = (x - x.mean(0)) / x.std(0, ddof=1)
    expected = np.minimum(expected, 1)
    expected = np.concatenate([expected, expected[:, ::-1].max(0, keepdims=True)])
    for value in (df.constant(x), df.constant(x + 1)):
        np.testing.assert_allclose(standardised(value), expected, atol=1e-13)
    assert standardised.experimental_get_tracing_count() == 1
    assert "numpy:" not in str(standardised.status())


def test_a_condition_requests_an_array() -> None:
    @df.function
    def grown(x: Any, least: Any) -> Any:
        x = xp.asarray(x)
        while xp.sum(x) < least and not xp.any(x == 64.0):
            x = x * 2.0
        if xp.all(x > 10.0):
            return x
        return -x

    assert grown(df.constant([1.0, 2.0]), df.constant(20.0)).tolist() == [-8.0, -16.0]
    assert grown(df.constant([1.0, 2.0]), df.constant(90.0)).tolist() == [32.0, 64.0]
    assert grown.experimental_get_tracing_count() == 1


def test_sizes_that_depend_on_data() -> None:
    @df.function
    def selected(x: Any, n: Any) -> Any:
        x = xp.asarray(x)
        return x[x > 1], xp.unique_values(x), xp.nonzero(x), xp.arange(n), xp.arange(1, n, 2)

    x = np.array([3, 0, 1, 3, 2])
    assert [y.tolist() for y in selected(x, df.constant(4))[:2]] == [[3, 3, 2], [0, 1, 2, 3]]
    assert selected(x, df.constant(4))[2][0].tolist() == [0, 2, 3, 4]
    assert [y.tolist() for y in selected(x, df.constant(4))[3:]] == [[0, 1, 2, 3], [1, 3]]


def test_a_mask_known_only_at_run_time_takes_several_values() -> None:
    @df.function
    def put(x: Any, mask: Any, values: Any) -> Any:
        x = xp.asarray(x, copy=True)
        x[mask] = values
        return x

    mask = np.array([True, False, True])
    assert put(np.zeros(3), mask, np.array([1.0, 2.0])).tolist() == [1.0, 0.0, 2.0]


def test_buffers_have_a_dtype() -> None:
    assert xp.asarray(memoryview(b"ab")).dtype == xp.uint8
    assert xp.asarray(array.array("f", [1.0])).dtype == xp.float32
    assert xp.asarray(range(3)).dtype == xp.int64


def test_a_loop_carries_arrays() -> None:
    @df.function
    def doubled(x: Any, n: Any) -> Any:
        while n > 0:
            x = x * 2.0
            n = n - 1
        return x

    assert doubled(xp.ones(2), df.constant(3)).tolist() == [8.0, 8.0]


def test_a_dynamic_size_is_none() -> None:
    sizes = []

    @df.function(input_signature=[df.TensorSpec([None, 2])])
    def total(x: Any) -> Any:
        y = xp.asarray(x)
        sizes.append((y.shape, y.size))
        return xp.sum(y, axis=0) + xp.var(y, axis=0) * 0.0

    assert total(df.ones([3, 2])).tolist() == [3.0, 3.0]
    assert sizes == [((None, 2), None)]


def test_functions_that_need_sizes_wait_for_them_in_a_trace() -> None:
    @df.function(input_signature=[df.TensorSpec([None, 3], df.float64)])
    def described(x: Any) -> Any:
        x = xp.asarray(x)
        return xp.linalg.matrix_rank(x), xp.linalg.diagonal(x), xp.fft.fftshift(x, axes=0)

    for a in (np.eye(2, 3), np.arange(12.0).reshape(4, 3)):
        rank, diagonal, shifted = described(df.constant(a))
        assert rank.tolist() == np.linalg.matrix_rank(a)
        assert diagonal.tolist() == np.diagonal(a).tolist()
        assert shifted.tolist() == np.fft.fftshift(a, axes=0).tolist()


def test_numpy_takes_arrays() -> None:
    x = xp.asarray(A)
    np.testing.assert_array_equal(np.asarray(x), A)
    result = A + x
    assert isinstance(result, xp.Array)
    np.testing.assert_array_equal(result, A + A)
    np.testing.assert_array_equal(np.from_dlpack(x), A)
    assert not np.asarray(x).flags.writeable


@pytest.mark.parametrize("copy", [None, True, False])
def test_other_libraries_memory_is_taken_by_dlpack(copy: bool | None) -> None:
    theirs = np.arange(3.0)
    x = xp.from_dlpack(theirs, copy=copy)
    assert np.shares_memory(np.asarray(x), theirs) is (copy is False)
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert x.__dlpack_device__() == (1, 0)
