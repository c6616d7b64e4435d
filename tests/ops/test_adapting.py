"""Python's and NumPy's values take the dtype of a tensor operand, in all functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import DTypeError

ONES = [[1.0, 1.0], [1.0, 1.0]]

FUNCTIONS = {
    "add": df.add,
    "atan2": df.atan2,
    "divide": df.divide,
    "divide_no_nan": df.math.divide_no_nan,
    "floordiv": df.math.floordiv,
    "floormod": df.math.floormod,
    "maximum": df.maximum,
    "multiply_no_nan": df.math.multiply_no_nan,
    "pow": df.pow,
    "squared_difference": df.math.squared_difference,
    "xlogy": df.math.xlogy,
    "xdivy": df.math.xdivy,
    "matmul": lambda x, y: df.matmul(x, ONES),
    "where": lambda x, y: df.where(df.constant(True), x, y),
    "clip_by_value": lambda x, y: df.clip_by_value(x, y, 7.0),
    "tensordot": lambda x, y: df.tensordot(x, ONES, 1),
    "einsum": lambda x, y: df.einsum("ij,jk->ik", x, ONES),
    "matvec": lambda x, y: df.linalg.matvec(x, ONES[0]),
    "bias_add": lambda x, y: df.nn.bias_add(x, ONES[0]),
    "batch_normalization": lambda x, y: df.nn.batch_normalization(x, y, 2.0, 1.0, 1.0, 1e-3),
    "tensor_scatter_nd_update": lambda x, y: df.tensor_scatter_nd_update(x, [[0]], ONES[:1]),
    "tensor_scatter_nd_add": lambda x, y: df.tensor_scatter_nd_add(x, [[0]], ONES[:1]),
}


@pytest.mark.parametrize("dtype", [df.float16, df.float64])
@pytest.mark.parametrize("other", [0.7, 2, ONES, np.float32(0.5)], ids=["float", "int", "list", "numpy"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_tensor_decides(mode, name, other, dtype):
    x = df.constant([[1.5, 2.0], [3.0, 4.0]], dtype)
    result = mode(lambda x: FUNCTIONS[name](x, other))(x)
    assert result.dtype is dtype
    whole = FUNCTIONS[name](x, df.constant(other, dtype))
    np.testing.assert_allclose(result, whole, rtol=4 * np.finfo(dtype.dtype).eps)


def test_updates_of_another_dtype_are_refused_eagerly_too():
    with pytest.raises(DTypeError, match="int32 should be float32"):
        df.tensor_scatter_nd_add(df.zeros([2]), [[0]], df.constant([1]))


def test_integers_beyond_int64_adapt_to_uint64(mode):
    top = 2**64 - 1
    assert mode(lambda x: x + (top - 1))(df.constant([1], df.uint64)).numpy().tolist() == [top]


@pytest.mark.parametrize("axis", [1, np.array(1), np.array([1]), np.int64(1), [1], df.constant(1)])
def test_an_axis_may_be_an_array(mode, axis):
    assert mode(lambda x: df.reduce_sum(x, axis))(df.ones([2, 3])).numpy().tolist() == [3, 3]
    assert mode(lambda x: df.reduce_std(x, axis))(df.ones([2, 3])).numpy().tolist() == [0, 0]


@pytest.mark.parametrize("run", [lambda f: f, df.function], ids=["eager", "function"])
def test_tensors_in_lists_are_cast_to_the_dtype_that_is_required(run: Callable[[Any], Any]) -> None:
    real, whole = df.constant(1.5), df.Variable(2)
    convert = run(lambda dtype: df.convert_to_tensor([[real, 3], [whole, 4]], dtype))
    for dtype, expected in [(df.int32, [[1, 3], [2, 4]]), (df.float64, [[1.5, 3.0], [2.0, 4.0]])]:
        converted = convert(dtype)
        assert (converted.dtype, converted.numpy().tolist()) == (dtype, expected)
    with pytest.raises(df.errors.InvalidArgumentError, match="float32 was given where int32 is required"):
        df.convert_to_tensor([whole, 2.5], df.int32)
    with pytest.raises(df.errors.InvalidArgumentError, match="float32 was given where int32 is required"):
        df.convert_to_tensor(real, df.int32)
