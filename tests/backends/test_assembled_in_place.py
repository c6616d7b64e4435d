"""Outputs assembled from pieces: written once, in place of an old value that isn't read any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dualflow as df

Array = np.ndarray[Any, Any]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "paddings"),
    [
        ((40_000,), [(3, 0)]),
        ((200, 150), [(1, 1), (1, 1)]),
        ((200, 150), [(0, 2), (0, 0)]),
        ((30, 20, 40), [(0, 1), (2, 0), (1, 3)]),
        ((20_000, 1), [(0, 0), (70, 0)]),
    ],
    ids=str,
)
def test_much_is_padded_as_by_numpy(shape: tuple[int, ...], paddings: Sequence[tuple[int, int]]) -> None:
    x = numbers(*shape)
    expected = np.pad(x, paddings, constant_values=7)
    np.testing.assert_array_equal(df.pad(x, paddings, constant_values=7).numpy(), expected)
    compiled = df.function(lambda x: df.pad(x, paddings, constant_values=7))
    np.testing.assert_array_equal(compiled(df.constant(x)).numpy(), expected)


def test_a_loop_pads_what_it_carries() -> None:
    @df.function
    def iterations(x: Any) -> Any:
        for _ in df.range(3):
            x = df.pad(x[1:-1, 1:-1] + x[:-2, 1:-1], [[1, 1], [1, 1]])
        return x

    x = numbers(150, 160)
    result = iterations(df.constant(x)).numpy()
    for _ in range(3):
        x = np.pad(x[1:-1, 1:-1] + x[:-2, 1:-1], 1)
    np.testing.assert_array_equal(result, x)


def test_a_variable_that_pieces_are_read_from_keeps_them_until_then() -> None:
    start = numbers(6, 3)
    v = df.Variable(start)

    @df.function
    def turned(x: Any) -> Any:
        v.assign(df.concat([v[2:], x], 0))
        return v.read_value()

    x = numbers(2, 3)
    for _ in range(3):
        start = np.concatenate([start[2:], x])
        np.testing.assert_array_equal(turned(df.constant(x)).numpy(), start)
        np.testing.assert_array_equal(v.numpy(), start)


def test_a_reassembled_variable_is_read_before_it_is_written() -> None:
    first, x = numbers(4, 3), numbers(2, 3)
    v = df.Variable(first)

    @df.function
    def replaced(x: Any) -> Any:
        old = v.read_value()
        v.assign(df.concat([x, x + 1.0], 0))
        return df.reduce_sum(old * 2.0), old

    total, old = replaced(df.constant(x))
    np.testing.assert_allclose(total.numpy(), first.sum() * 2, rtol=1e-5)
    np.testing.assert_array_equal(old.numpy(), first)
    np.testing.assert_array_equal(v.numpy(), np.concatenate([x, x + np.float32(1)]))


@pytest.mark.parametrize("first", ["assign", "fail"])
def test_a_failed_call_keeps_what_was_assigned_before_it(first: str) -> None:
    v = df.Variable(numbers(4, 3))

    @df.function
    def failing(x: Any, at: Any) -> Any:
        rows = df.gather(x, at) if first == "fail" else x
        v.assign(df.concat([x, x], 0))
        return rows + df.gather(x, at)

    x = df.constant(numbers(2, 3))
    assigned = np.concatenate([x.numpy()] * 2)
    expected = assigned if first == "assign" else v.numpy()
    with pytest.raises(IndexError):
        failing(x, df.constant(9))
    np.testing.assert_array_equal(v.numpy(), expected)
    failing(x, df.constant(1))
    np.testing.assert_array_equal(v.numpy(), assigned)


def test_two_variables_exchange_pieces() -> None:
    a, b = df.Variable(numbers(4)), df.Variable(numbers(4) + 5)
    x, y = a.numpy(), b.numpy()

    @df.function
    def exchanged() -> None:
        old_a, old_b = a.read_value(), b.read_value()
        a.assign(df.concat([old_b[:2], old_b[2:]], 0))
        b.assign(df.concat([old_a[2:], old_a[:2]], 0))

    exchanged()
    np.testing.assert_array_equal(a.numpy(), y)
    np.testing.assert_array_equal(b.numpy(), np.concatenate([x[2:], x[:2]]))


def test_a_loop_may_put_together_what_it_has_read() -> None:
    @df.function
    def turned(x: Any, y: Any) -> Any:
        for _ in df.range(3):
            x, y = df.concat([y[1:], y[:1]], 0), df.concat([x[2:], x[:2]], 0)
        return x, y

    x, y = numbers(50), numbers(50) + np.float32(3)
    result = turned(df.constant(x), df.constant(y))
    for _ in range(3):
        x, y = np.roll(y, -1), np.roll(x, -2)
    np.testing.assert_array_equal(result[0].numpy(), x)
    np.testing.assert_array_equal(result[1].numpy(), y)
