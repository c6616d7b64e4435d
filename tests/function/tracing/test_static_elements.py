"""Sizes that follow from constants and known axes stay known where a shape is put together of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

SHAPES: dict[str, tuple[Callable[[Any], Any], tuple[int | None, ...]]] = {
    "concat": (lambda s: df.concat([[s[0] * s[1]], [3]], 0), (None, 3)),
    "concat of a slice": (lambda s: df.concat([s[:1] * s[1:2], s[2:]], 0), (None, 3)),
    "stack": (lambda s: df.stack([s[0] * s[1], 3]), (None, 3)),
    "a list": (lambda s: [s[0] * s[1], s[2]], (None, 3)),
    "a cast": (lambda s: df.cast(df.stack([s[0] * s[1], 3]), df.int64), (None, 3)),
    "backwards": (lambda s: s[::-1], (3, None, None)),
    "nothing open": (lambda s: df.concat([s[2:], [10]], 0), (3, 10)),
    "expanded and reshaped": (
        lambda s: df.concat([df.expand_dims(s[0] * s[1], 0), df.reshape(s[2], [1])], 0),
        (None, 3),
    ),
    "nothing known": (lambda s: df.maximum(s, 1), (None, None, None)),
}
MAKE: dict[str, Callable[[Any, Any], Any]] = {
    "reshape": df.reshape,
    "zeros": lambda x, shape: df.zeros(shape) + df.reduce_sum(x),
    "broadcast_to": lambda x, shape: df.broadcast_to(df.reduce_sum(x), shape),
    "fill": lambda x, shape: df.fill(shape, df.reduce_sum(x)),
    "stateless_uniform": lambda x, shape: df.random.stateless_uniform(shape, [1, 2]),
}
X = df.reshape(df.range(30.0), [2, 5, 3])


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("make", MAKE)
def test_known_sizes_stay_known(name: str, make: str):
    shape_of, expected = SHAPES[name]
    shapes = []

    def f(x: Any) -> Any:
        y = MAKE[make](x, shape_of(df.shape(x)))
        shapes.append(y.shape)
        return y

    result = df.function(f, input_signature=[df.TensorSpec([None, None, 3])])(X)
    assert tuple(shapes[0]) == expected
    np.testing.assert_allclose(result, f(X), rtol=1e-6)


def test_a_size_left_to_reshape_is_dynamic():
    shapes = []

    @df.function(input_signature=[df.TensorSpec([None, None, 3])])
    def f(x):
        y = df.reshape(x, df.concat([[-1], df.shape(x)[2:]], 0))
        shapes.append(tuple(y.shape))
        return y

    np.testing.assert_array_equal(f(X), X.numpy().reshape(10, 3))
    assert shapes == [(None, 3)]


def test_a_negative_size_among_dynamic_ones_is_refused_while_tracing():
    with pytest.raises(df.errors.InvalidArgumentError, match="negative sizes"):
        df.function(
            lambda x: df.zeros(df.concat([df.shape(x)[:1], [-3]], 0)), input_signature=[df.TensorSpec([None])]
        ).get_concrete_function()


def test_sizes_stay_known_in_an_explicit_graph():
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(df.float32, [None, None, 3])
        s = v1.shape(x)
        y = v1.reshape(x, v1.concat([[s[0] * s[1]], [3]], 0))
        assert y.shape.as_list() == [None, 3]
        np.testing.assert_array_equal(session.run(y, {x: X.numpy()}), X.numpy().reshape(10, 3))


def test_the_static_value_of_a_shape_is_that_of_the_call_if_calls_differ_in_size():
    static_values = []

    @df.function
    def traced(x):
        joined = df.concat([df.shape(x)[:1] * 2, [7]], 0)
        static_values.append((df.get_static_value(joined), df.get_static_value(x.shape[0])))
        assert df.get_static_value(df.cast(df.reduce_sum(x), df.int32)) is None
        return df.zeros(df.get_static_value(joined)) + df.reduce_sum(x)

    for rows in (3, 4, 5, 4):
        assert traced(df.ones([rows, 2])).shape == (2 * rows, 7)
    for joined, rows in static_values:
        assert joined.tolist() == [2 * rows, 7]
