"""Names that stand for a few calls of other ops: on lists, on shapes, before a cast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df


def test_lists_of_tensors(mode: Any) -> None:
    x, y = df.constant([1, 2]), df.constant(3.0)
    for function in (df.identity_n, lambda xs: df.tuple([*xs, None])[:2]):
        found = mode(function)([x, y])
        assert [z.numpy().tolist() for z in found] == [[1, 2], 3.0]
    assert df.tuple([x, None])[1] is None
    assert [z.numpy().tolist() for z in mode(df.shape_n)([x, y])] == [[2], []]
    assert df.shape_n([x], out_type=df.int64)[0].dtype == df.int64
    assert mode(df.parallel_stack)([x, x]).numpy().tolist() == [[1, 2], [1, 2]]
    assert mode(df.guarantee_const)(x).numpy().tolist() == [1, 2]


SHAPES = [([1, 3], [2, 1]), ([], [4]), ([5, 1, 3], [4, 1]), ([0], [1]), ([2], [2])]


@pytest.mark.parametrize(("x", "y"), SHAPES)
def test_the_shape_of_both(mode: Any, x: list[int], y: list[int]) -> None:
    expected = list(np.broadcast_shapes(x, y))
    assert list(df.broadcast_static_shape(df.TensorShape(x), df.TensorShape(y))) == expected
    given = (df.constant(x, df.int32), df.constant(y, df.int32))
    assert mode(df.broadcast_dynamic_shape)(*given).numpy().tolist() == expected


def test_an_open_size_stays_open() -> None:
    assert df.broadcast_static_shape([None, 1], [3]) == (None, 3)


def test_shapes_that_do_not_broadcast(mode: Any) -> None:
    with pytest.raises(ValueError, match="do not broadcast"):
        mode(df.broadcast_dynamic_shape)(df.constant([2]), df.constant([3]))
    with pytest.raises(ValueError, match="do not broadcast"):
        df.broadcast_static_shape([2], [3])


@pytest.mark.parametrize(
    ("x", "dtype", "expected"),
    [
        ([300.0, -5.0, 2.7], "uint8", [255, 0, 2]),
        ([3e9, -3e9], "int32", [2147483520, -2147483648]),
        (np.array([1 << 40, -5]), "int32", [(1 << 31) - 1, -5]),
        (np.array([-5, 7]), "uint64", [0, 7]),
        (np.array([1 << 63], np.uint64), "int64", [(1 << 63) - 1]),
        ([1e30, -1e30, np.inf], "float16", [65504, -65504, 65504]),
        ([1, 2], "float32", [1, 2]),
        ([1 + 2j], "float32", [1]),
        ([True, False], "int8", [1, 0]),
    ],
)
def test_a_cast_that_stays_in_range(mode: Any, x: Any, dtype: str, expected: list[float]) -> None:
    found = mode(lambda x: df.saturate_cast(x, dtype))(df.constant(x))
    assert found.dtype == dtype
    assert found.numpy().tolist() == expected
