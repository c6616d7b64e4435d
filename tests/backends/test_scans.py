"""Kernels of running sums and products have the bits of NumPy's sequential results."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.runtime import threads

WAYS = list(itertools.product((False, True), (False, True)))
SHAPES = [(7,), (1,), (0,), (3, 40), (5, 1, 6), (4, 0), (20, 37, 3)]
RUNNING = {df.cumsum: (np.add, 0), df.math.cumprod: (np.multiply, 1)}
ON_NUMBA = [("numba", np.float32, False, False), ("numba", np.int8, True, True)]


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    x = (np.random.default_rng(len(shape)).normal(size=shape) * 3).astype(dtype)
    x[..., :1] *= -0.0 if x.dtype.kind == "f" else 1
    return x


def expected(x: np.ndarray, function: Any, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
    """NumPy's running results; exclusive ones start with the neutral element."""
    ufunc, first = RUNNING[function]
    rows = np.moveaxis(x, axis, 0)
    rows = rows[::-1] if reverse else rows
    if exclusive and len(rows):
        rows = np.concatenate([np.full_like(rows[:1], first), rows[:-1]])
    sums = ufunc.accumulate(rows, 0, x.dtype)
    return np.moveaxis(sums[::-1] if reverse else sums, 0, axis)


def same_bits(actual: Any, desired: np.ndarray) -> None:
    assert actual.numpy().dtype == desired.dtype
    assert actual.numpy().tobytes() == np.ascontiguousarray(desired).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("function", RUNNING, ids=lambda f: f.__name__)
def test_kernels_give_numpys_bits_along_every_axis(function: Any, dtype: Any) -> None:
    calls = [(i, axis, *way) for i, s in enumerate(SHAPES) for axis in range(len(s)) for way in WAYS]
    xs = [numbers(shape, dtype) for shape in SHAPES]
    f = df.function(lambda xs: [function(xs[i], axis, *way) for i, axis, *way in calls])
    for (i, axis, exclusive, reverse), result in zip(calls, f(xs), strict=True):
        same_bits(result, expected(xs[i], function, axis, exclusive, reverse))


def test_they_are_machine_code() -> None:
    parts = df.function(df.cumsum).get_concrete_function(df.TensorSpec([3, 4])).parts
    assert all(part.node is None for part in parts)


@pytest.mark.parametrize(("backend", "dtype", "exclusive", "reverse"), ON_NUMBA)
def test_other_backends_give_them_too(backend: str, dtype: Any, exclusive: bool, reverse: bool) -> None:
    x = numbers((20, 37, 3), dtype)
    f = df.function(lambda x: [df.cumsum(x, a, exclusive, reverse) for a in range(3)], backend=backend)
    for axis, result in enumerate(f(x)):
        same_bits(result, expected(x, df.cumsum, axis, exclusive, reverse))


@pytest.mark.parametrize("dtype", [np.float16, np.complex64])
def test_numbers_that_loops_do_not_add_up_are_numpys(dtype: Any) -> None:
    x = numbers((30,), dtype)
    same_bits(df.function(df.cumsum)(x), np.add.accumulate(x, dtype=dtype))


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
def test_views_are_summed_without_a_copy(exclusive: bool, reverse: bool) -> None:
    x = numbers((9, 40, 3), np.float32)
    f = df.function(lambda x: df.cumsum(df.transpose(x[:, ::-2])[:, 1:], 1, exclusive, reverse))
    view = x[:, ::-2].transpose()[:, 1:]
    same_bits(f(x), expected(view, df.cumsum, 1, exclusive, reverse))


@pytest.mark.parametrize("shape", [(70_000,), (300, 250)])
def test_large_eager_tensors_have_the_same_bits(shape: tuple[int, ...]) -> None:
    x = numbers(shape, np.float32)
    for axis, (exclusive, reverse) in itertools.product(range(len(shape)), WAYS):
        result = df.cumsum(df.constant(x), axis, exclusive, reverse)
        same_bits(result, expected(x, df.cumsum, axis, exclusive, reverse))


def test_sizes_known_only_at_run_time() -> None:
    signature = [df.TensorSpec([None, None])]
    f = df.function(
        lambda x: [df.cumsum(x, a, *way) for a in (0, 1) for way in WAYS], input_signature=signature
    )
    for shape in ((5, 40), (1, 3), (0, 4)):
        x = numbers(shape, np.float32)
        for (axis, way), result in zip(itertools.product((0, 1), WAYS), f(x), strict=True):
            same_bits(result, expected(x, df.cumsum, axis, *way))


def test_a_variable_becomes_its_own_running_sums() -> None:
    x = numbers((30, 4), np.float32)
    v = df.Variable(x)
    df.function(lambda: v.assign(df.cumsum(v, 0, True)))()
    same_bits(v, expected(x, df.cumsum, 0, True, False))


def test_any_number_of_threads_gives_the_same() -> None:
    x, before = numbers((400, 300), np.float32), threads.num_threads()
    f = df.function(lambda x: (df.cumsum(x, 0), df.cumsum(x, 1)))
    try:
        for count in range(1, threads.max_threads() + 1):
            threads.set_num_threads(count)
            for axis, result in enumerate(f(x)):
                same_bits(result, expected(x, df.cumsum, axis, False, False))
    finally:
        threads.set_num_threads(before)
