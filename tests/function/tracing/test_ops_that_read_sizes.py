"""Ops that decide by sizes as Python code does, in traces in which these sizes are dynamic.

The first call has a trace of its own, and the second one, with another size, a trace for all sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError


def counting(*shape: int) -> Any:
    return df.reshape(df.range(np.prod(shape), dtype=df.float32), shape)


def traced_for_all_sizes(function: Callable[..., Any], *others: Any) -> Any:
    """A function with a trace for calls whose first argument has any number of rows of three elements."""
    traced = df.function(function)
    for rows in (4, 5):
        traced(counting(rows, 3), *others)
    return traced


RESULTS = {
    "a size": lambda x: x.shape[0],
    "a computed size": lambda x: {"rows": x.shape[0] * 2 + 1, "half": x.shape[0] / 2},
    "a shape": lambda x: x.shape,
    "squeeze": df.squeeze,
    "equal": lambda x: x == df.ones([4, 3]),
    "unequal": lambda x: x != df.ones([4, 3]),
    "unstack": df.unstack,
}


@pytest.mark.parametrize("function", RESULTS.values(), ids=RESULTS)
def test_a_result_is_that_of_the_size_of_the_call(function: Callable[[Any], Any]) -> None:
    traced = df.function(function)
    for rows in (4, 5, 1, 6, 4):
        x = counting(rows, 3)
        results, expected = df.nest.flatten(traced(x)), df.nest.flatten(function(x))
        for result, value in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, df.convert_to_tensor(value), strict=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x / np.sqrt(x.shape[0]),
        lambda x: x * np.log2(x.shape[0] / 2),
        lambda x: x * (np.float64(0.5) * x.shape[0]),
        lambda x: x * (x.shape[0] / np.float64(2.0)),
        lambda x: x * (1 / x.shape[0] - np.float64(2.0)),
        lambda x: df.cast(x, df.int8) * (np.int64(7) - x.shape[0] * np.int64(2)),
        lambda x: -x if np.int64(4) < x.shape[0] or x.shape[0] <= np.int64(1) else x,
        lambda x: x + np.multiply(np.arange(3.0, dtype=np.float32), x.shape[0]),
    ],
)
def test_numpy_computes_with_a_size_as_with_a_python_number(function: Callable[[Any], Any]) -> None:
    traced = df.function(function)
    for rows in (4, 5, 1, 4):
        x = counting(rows, 3)
        np.testing.assert_array_equal(traced(x), df.function(function, sizes="exact")(x), strict=True)


def test_numpy_integers_leave_sizes_dynamic() -> None:
    traced = df.function(lambda x: df.reshape(x, [np.int64(3) * x.shape[0]]) * (x.shape[0] // np.int32(2)))
    for rows in (4, 5, 6):
        np.testing.assert_array_equal(traced(counting(rows, 3)), counting(rows * 3) * (rows // 2))
    assert traced.experimental_get_tracing_count() == 1


def test_a_vectorized_map_broadcasts_one_row() -> None:
    traced = traced_for_all_sizes(
        lambda x, y: df.vectorized_map(lambda pair: pair[0] + pair[1], (x, y)), counting(1, 3)
    )
    for rows in (6, 1, 2):
        x = counting(rows, 3)
        np.testing.assert_array_equal(traced(x, counting(1, 3)), x + counting(1, 3))
    np.testing.assert_array_equal(traced(counting(1, 3), counting(4, 3)), counting(1, 3) + counting(4, 3))


def test_a_size_that_is_kept_is_hashable() -> None:
    sizes = []
    traced_for_all_sizes(lambda x: sizes.append(x.shape[0]))
    assert [hash(n) for n in sizes] == [hash(4), hash(5)]


def refused(function: Callable[..., Any], *others: Any) -> str:
    """The error of a function for all sizes for an argument of seven rows."""
    traced = df.function(function)
    traced(counting(4, 3), *others)
    for rows in (5, 6):
        with pytest.raises(InvalidArgumentError):
            traced(counting(rows, 3), *others)
    with pytest.raises(InvalidArgumentError) as error:
        traced(counting(7, 3), *others)
    return str(error.value)


def test_a_variable_is_not_assigned_a_value_of_another_size() -> None:
    variable = df.Variable(counting(4, 3))
    text = refused(lambda x: variable.assign(x))
    assert "has shape (4, 3) and can't hold a value of shape (7, 3)" in text
    np.testing.assert_array_equal(variable, counting(4, 3))


def test_an_update_is_not_broadcast_to_the_variable() -> None:
    variable = df.Variable(counting(4, 3))
    added = df.function(lambda x: variable.assign_add(x))
    for rows in (4, 1, 2):
        if rows != 4:
            with pytest.raises(InvalidArgumentError, match="can't hold a value of shape"):
                added(counting(rows, 3))
        else:
            added(counting(rows, 3))
    np.testing.assert_array_equal(variable, 2 * counting(4, 3))


def test_the_size_of_an_open_signature_is_checked_before_a_variable_is_assigned() -> None:
    variable = df.Variable(counting(4, 3))
    assign = df.function(lambda x: variable.assign(x), input_signature=[df.TensorSpec([None, 3])])
    with pytest.raises(InvalidArgumentError, match=r"\(7, 3\).*\(4, 3\)"):
        assign(counting(7, 3))
    np.testing.assert_array_equal(variable, counting(4, 3))


def test_assert_shapes_compares_sizes_of_a_trace() -> None:
    text = refused(lambda x, y: df.debugging.assert_shapes([(y, ("rows",)), (x, ("rows", 3))]), counting(4))
    assert text.startswith("Axis 0 of a tensor of shape (7, 3) should have size 4, as 'rows' has in (4,).")


def test_ensure_shape_refuses_other_sizes_with_the_text_of_a_static_trace() -> None:
    text = refused(lambda x: df.ensure_shape(x, [4, 3]))
    assert "a tensor of shape (7, 3) should have shape (4, 3)." in text


def test_a_vector_has_no_truth() -> None:
    @df.function
    def f(x: Any) -> Any:
        return x if x[:, 0] > 0 else -x

    f(counting(1, 3))
    for rows in (2, 3):
        with pytest.raises(InvalidArgumentError, match=rf"has shape \({rows},\), but must be a scalar"):
            f(counting(rows, 3))


def test_a_declared_element_of_a_tensor_array_has_its_size_before_it_is_written() -> None:
    def program(x: Any) -> Any:
        return df.TensorArray(df.float32, 2, infer_shape=False, element_shape=[2]).write(1, x).stack()

    traced = df.function(program, input_signature=[df.TensorSpec([None])])
    assert traced(df.ones([2])).numpy().tolist() == [[0, 0], [1, 1]]


def test_tridiagonal_products_refuse_another_number_of_rows() -> None:
    diagonals = df.ones([3, 1])
    traced = df.function(
        lambda x: df.linalg.tridiagonal_matmul(diagonals, x), input_signature=[df.TensorSpec([None, 3])]
    )
    np.testing.assert_array_equal(traced(df.ones([1, 3])), df.ones([1, 3]))
    with pytest.raises(InvalidArgumentError, match="as many rows as diagonals"):
        traced(df.ones([2, 3]))


FRAMES = {
    "conv2d": (lambda x: df.nn.conv2d(x, df.ones([3, 3, 4, 2]), 1, "SAME"), (0, 5, 4)),
    "strided conv2d": (lambda x: df.nn.conv2d(x, df.ones([2, 2, 4, 2]), 2, "VALID"), (1, 5, 4)),
    "depthwise_conv2d": (
        lambda x: df.nn.depthwise_conv2d(x, df.ones([3, 3, 4, 2]), [1, 1, 1, 1], "SAME"),
        (0, 5, 4),
    ),
    "avg_pool2d": (lambda x: df.nn.avg_pool2d(x, 2, 2, "SAME"), (0, 4, 3)),
    "max_pool over channels": (
        lambda x: df.nn.max_pool(x, [1, 1, 1, 2], [1, 1, 1, 2], "SAME"),
        (0, 3, 4),
    ),
    "local_response_normalization": (df.nn.local_response_normalization, (0, 3, 4)),
    "depth_to_space": (lambda x: df.nn.depth_to_space(x, 2), (3, 0, 4)),
    "space_to_depth": (lambda x: df.nn.space_to_depth(x, 2), (0, 4, 1)),
    "extract_patches": (
        lambda x: df.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"),
        (3, 3, 0),
    ),
    "overlap_and_add": (lambda x: df.signal.overlap_and_add(x, 2), (3, 0, 4)),
    "inverse_stft": (lambda x: df.signal.inverse_stft(df.cast(x, df.complex64), 4, 2), (0, 3)),
}


@pytest.mark.parametrize(("function", "shape"), FRAMES.values(), ids=FRAMES)
def test_results_without_elements_have_the_dynamic_first_size(
    function: Callable[[Any], Any], shape: tuple[int, ...]
) -> None:
    traced = df.function(function, input_signature=[df.TensorSpec([None, *shape])])
    for rows in (2, 0, 3):
        x = df.zeros([rows, *shape])
        assert traced(x).shape == function(x).shape


@pytest.mark.parametrize("pool", [df.nn.avg_pool2d, df.nn.max_pool2d])
def test_gradients_without_elements_have_the_dynamic_first_size(pool: Callable[..., Any]) -> None:
    def gradient(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = pool(df.nn.conv2d(x, df.ones([3, 3, 2, 2]), 1, "SAME"), 2, 2, "SAME")
        return tape.gradient(y, x)

    traced = df.function(gradient, input_signature=[df.TensorSpec([None, 0, 4, 2])])
    for rows in (2, 0):
        assert traced(df.zeros([rows, 0, 4, 2])).shape == (rows, 0, 4, 2)
