"""``SparseTensor``: made of its parts and of tensors, through traced functions, loops and gradients."""

from __future__ import annotations

import copy
import operator
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dualflow as df

PLACES, VALUES = [[0, 1], [1, 2]], [1.0, 2.0]


def sample() -> Any:
    return df.SparseTensor(PLACES, VALUES, [3, 4])


def whole() -> np.ndarray[Any, Any]:
    x = np.zeros((3, 4), np.float32)
    x[0, 1], x[1, 2] = VALUES
    return x


def test_it_has_its_parts() -> None:
    x = sample()
    assert x.indices.dtype == df.int64
    assert x.dense_shape.dtype == df.int64
    assert x.indices.numpy().tolist() == PLACES
    assert x.values.numpy().tolist() == VALUES
    assert x.dense_shape.numpy().tolist() == [3, 4]
    assert (x.shape, x.get_shape(), x.dtype) == ((3, 4), (3, 4), df.float32)


def test_it_prints_as_tensorflows() -> None:
    assert repr(df.SparseTensor([[1]], [5], [3])) == (
        "SparseTensor(indices=tf.Tensor([[1]], shape=(1, 1), dtype=int64), values=tf.Tensor([5], shape=(1,), "
        "dtype=int32), dense_shape=tf.Tensor([3], shape=(1,), dtype=int64))"
    )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_indices_are_int64_whatever_they_were(dtype: str) -> None:
    assert df.SparseTensor(df.constant([[1]], dtype), [5], df.constant([3], dtype)).indices.dtype == df.int64


def test_a_shape_may_have_more_places_than_memory() -> None:
    x = df.SparseTensor([[10**9, 5]], [1.0], [2 * 10**9, 10**9])
    assert df.sparse.transpose(x).indices.numpy().tolist() == [[5, 10**9]]


def test_it_is_made_of_what_has_the_parts() -> None:
    parts = SimpleNamespace(indices=PLACES, values=VALUES, dense_shape=[3, 4])
    assert np.array_equal(df.sparse.to_dense(df.SparseTensor.from_value(parts)), whole())


def test_other_values_at_the_same_places() -> None:
    x = sample().with_values([5, 6])
    assert x.dtype == df.int32
    assert x.indices.numpy().tolist() == PLACES


def test_a_product_with_a_tensor_reads_it_at_the_stored_indices(mode: Any) -> None:
    dense = np.arange(12, dtype=np.float32).reshape(3, 4)
    for other in (dense, dense[:, :1], dense[1], dense[2, 3]):
        result = mode(lambda x, y: x * y)(sample(), df.constant(other))
        assert np.array_equal(df.sparse.to_dense(result), whole() * other)
    result = mode(lambda x, y: x / y)(sample(), df.constant(dense + 1))
    assert np.array_equal(df.sparse.to_dense(result), whole() / (dense + 1))


def test_copies_have_the_same_parts() -> None:
    for x in (copy.copy(sample()), copy.deepcopy(sample()), pickle.loads(pickle.dumps(sample()))):
        assert np.array_equal(df.sparse.to_dense(x), whole())


# In traced functions


def test_a_traced_function_takes_and_returns_it() -> None:
    traces = []

    @df.function
    def squared(x: Any) -> Any:
        traces.append(x.shape)
        return {"x": x.with_values(x.values**2)}

    for x in (sample(), sample(), df.SparseTensor(PLACES, VALUES, [9, 9])):
        result = squared(x)["x"]
        assert isinstance(result, df.SparseTensor)
        assert result.shape == x.shape
        assert result.values.numpy().tolist() == [1.0, 4.0]
    assert traces == [(3, 4), (9, 9)]


def test_an_input_signature_describes_it() -> None:
    @df.function(input_signature=[df.SparseTensorSpec([3, 4]), df.TensorSpec([4, 2])])
    def product(x: Any, y: Any) -> Any:
        return df.sparse.sparse_dense_matmul(x, y)

    y = np.arange(8, dtype=np.float32).reshape(4, 2)
    assert np.array_equal(product(sample(), y), whole() @ y)
    assert np.array_equal(product(df.sparse.from_dense(np.ones((3, 4), np.float32)), y), np.ones((3, 4)) @ y)
    assert product.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError):
        product(df.SparseTensor(PLACES, VALUES, [9, 4]), y)


def test_a_branch_and_a_loop_carry_it() -> None:
    @df.function
    def grown(x: Any, n: Any) -> Any:
        for _ in df.range(n):
            x = x * 2.0
        if n > 2:
            x = x.with_values(-x.values)
        return df.sparse.to_dense(x)

    assert np.array_equal(grown(sample(), df.constant(2)), whole() * 4)
    assert np.array_equal(grown(sample(), df.constant(3)), whole() * -8)


# Gradients


def test_gradients_flow_to_its_values(mode: Any) -> None:
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(df.sparse.to_dense(x) ** 2)
        return tape.gradient(y, {"x": x})["x"]

    gradient = mode(slope)(sample())
    assert isinstance(gradient, df.SparseTensor)
    assert np.array_equal(df.sparse.to_dense(gradient), 2 * whole())


def test_gradients_flow_through_it_to_a_variable(mode: Any) -> None:
    v = df.Variable([1.0, 2.0])

    def slope() -> Any:
        with df.GradientTape() as tape:
            y = df.sparse.reduce_sum(df.SparseTensor(PLACES, v * 2.0, [3, 4]) * 3.0)
        return tape.gradient(y, v)

    assert mode(slope)().numpy().tolist() == [6.0, 6.0]


def test_a_target_is_the_sum_of_its_values() -> None:
    x = df.constant(VALUES)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.sparse.map_values(df.square, df.SparseTensor(PLACES, x, [3, 4]))
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]


# Elementwise functions


@pytest.mark.parametrize("name", ["abs", "negative", "sign", "square", "tanh", "math.expm1", "identity"])
@pytest.mark.parametrize("is_traced", [False, True])
def test_functions_that_map_0_to_0_are_those_of_the_whole_tensor(name: str, is_traced: bool) -> None:
    function = operator.attrgetter(name)(df)
    result = (df.function(function) if is_traced else function)(sample() * -0.5)
    np.testing.assert_allclose(df.sparse.to_dense(result), function(whole() * -0.5))


def test_a_cast_keeps_the_indices_and_has_a_gradient() -> None:
    x = df.constant(VALUES)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.cast(df.SparseTensor(PLACES, x, [3, 4]), df.float64)
    assert (y.dtype, y.indices.numpy().tolist()) == (df.float64, PLACES)
    assert tape.gradient(y, x).numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("function", [df.exp, df.math.log, df.math.reciprocal, lambda x: df.add(x, x)])
def test_other_functions_need_the_whole_tensor(function: Any) -> None:
    with pytest.raises(TypeError, match=r"df\.sparse\.to_dense"):
        function(sample())


# Specs


def test_a_spec_reports_what_fits() -> None:
    spec = df.SparseTensorSpec.from_value(sample())
    assert spec == df.SparseTensorSpec([3, 4], df.float32)
    assert hash(spec) == hash(df.SparseTensorSpec([3, 4], df.float32))
    assert spec.is_compatible_with(sample())
    assert df.SparseTensorSpec([None, 4]).is_compatible_with(sample())
    assert not df.SparseTensorSpec([4, 4]).is_compatible_with(sample())
    assert not spec.is_compatible_with(whole())
    assert repr(spec) == "SparseTensorSpec((3, 4), tf.float32)"
