"""Complex numbers in compiled functions: computed by parts in machine code, rounded as NumPy rounds them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.runtime.target import vector_bits

DTYPES = (np.complex64, np.complex128)
SPECIAL = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)
fused = pytest.mark.skipif(vector_bits() < 256, reason="NumPy multiplies and adds in one instruction")
POINTS = np.array([complex(a, b) for a, b in itertools.product(SPECIAL, SPECIAL)])


def drawn(dtype: Any, shape: Any = 1037, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    sizes = 10.0 ** random.uniform(-6, 6, (2, *np.empty(shape).shape))
    re, im = sizes * random.choice([-1, 1], sizes.shape)
    return np.asarray(re + 1j * im, dtype)


def compiled(function: Callable[..., Any], *arrays: Any) -> Any:
    return df.function(function)(*map(df.constant, arrays))


def assert_same(result: Any, expected: np.ndarray) -> None:
    """Equal part by part, nan where nan is."""
    array = result.numpy()
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array.real, expected.real)
    np.testing.assert_array_equal(array.imag, expected.imag)


def in_ulps(result: np.ndarray, exact: np.ndarray) -> Any:
    """How far parts are from exact ones, in units in their last places."""
    unit = result.real.dtype.type
    return [
        np.max(np.abs(a - b) / np.spacing(np.abs(b).astype(unit)))
        for a, b in ((result.real, exact.real), (result.imag, exact.imag))
    ]


@fused
@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic_is_numpys_to_the_bit(dtype: Any) -> None:
    def ops(x: Any, y: Any) -> Any:
        return x + y, x - y, x * y, x / y, -x, df.math.conj(x), df.square(x), (x * y + x) / (y - 2j)

    x, y = drawn(dtype), drawn(dtype, seed=1)
    desired = [x + y, x - y, x * y, x / y, -x, x.conj(), x * x, (x * y + x) / (y - dtype(2j))]
    for actual, expected in zip(compiled(ops, x, y), desired, strict=True):
        assert_same(actual, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons_choices_and_parts(dtype: Any) -> None:
    def ops(x: Any, y: Any) -> Any:
        parts = df.math.real(x), df.math.imag(y), df.complex(df.math.imag(x), df.math.real(y))
        kinds = df.math.isnan(x), df.math.isinf(x), df.math.isfinite(x)
        order = x < y, x <= y, x > y, x >= y, df.where(x < y, x, y), df.maximum(x, y), df.minimum(x, y)
        return *parts, df.equal(x, y), df.not_equal(x, y), *kinds, *order

    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(POINTS, POINTS))
    swapped = np.empty_like(x)
    swapped.real, swapped.imag = x.imag, y.real
    desired = [x.real, y.imag, swapped, x == y, x != y, np.isnan(x), np.isinf(x), np.isfinite(x)]
    with np.errstate(invalid="ignore"):
        desired += [x < y, x <= y, x > y, x >= y, np.where(x < y, x, y), np.maximum(x, y), np.minimum(x, y)]
    for actual, expected in zip(compiled(ops, x, y), desired, strict=True):
        assert_same(actual, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["divide", "abs", "sign", "exp", "log", "sqrt", "square", "reciprocal"])
def test_special_values_are_numpys(name: str, dtype: Any) -> None:
    x = POINTS.astype(dtype)
    y = x[::-1].copy()
    op = {"log": df.math.log, "reciprocal": df.math.reciprocal}.get(name) or getattr(df, name)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*((x, y) if name == "divide" else (x,)))
    result = compiled(op, x, y).numpy() if name == "divide" else compiled(op, x).numpy()
    for a, b in ((result.real, expected.real), (result.imag, expected.imag)):
        far = ~np.isfinite(b) | (b == 0)
        np.testing.assert_array_equal(a[far], b[far])
        np.testing.assert_allclose(a[~far], b[~far], rtol=4 * np.finfo(dtype).eps)


@pytest.mark.llvm
@pytest.mark.parametrize(("name", "bound"), [("abs", 2), ("exp", 4), ("log", 4), ("sqrt", 4), ("rsqrt", 5)])
def test_functions_are_right_to_a_few_units_in_the_last_place(name: str, bound: int) -> None:
    circle = np.exp(1j * np.linspace(-3, 3, 500)).astype(np.complex64)
    x = np.concatenate([drawn(np.complex64), circle])
    if name == "exp":
        x = x[np.abs(x) < 85]
    wide = x.astype(np.clongdouble)
    exact = 1 / np.sqrt(wide) if name == "rsqrt" else getattr(np, name)(wide)
    assert np.max(in_ulps(compiled(getattr(df.math, name), x).numpy(), exact)) <= bound


def test_logarithms_near_the_unit_circle_keep_their_digits() -> None:
    x = np.exp(1j * np.linspace(0.1, 3, 2000)) * (1 + 1e-9)
    exact = np.log(x.astype(np.clongdouble))
    assert np.max(in_ulps(compiled(df.math.log, x).numpy(), exact)) <= 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes_that_squares_do_not_hold(dtype: Any) -> None:
    most, least = float(np.finfo(dtype).max), float(np.finfo(dtype).tiny)
    x = np.array([complex(a, b) for a, b in itertools.product((most, least, -least / 8, 1), repeat=2)], dtype)
    with np.errstate(over="ignore"):
        sizes, roots = np.abs(x), np.sqrt(x)
    np.testing.assert_allclose(compiled(df.abs, x).numpy(), sizes, rtol=4 * np.finfo(dtype).eps)
    result = compiled(df.sqrt, x).numpy()
    for a, b in ((result.real, roots.real), (result.imag, roots.imag)):
        np.testing.assert_allclose(
            a, b, rtol=4 * np.finfo(dtype).eps, atol=float(np.finfo(dtype).smallest_subnormal)
        )


@pytest.mark.llvm
def test_elements_and_sums_are_machine_code() -> None:
    def f(x: Any) -> Any:
        y = df.exp(x) * df.math.conj(x) / (df.cast(df.abs(x), x.dtype) + 1.0)
        return (
            df.reduce_sum(y, 0),
            df.reduce_mean(y),
            df.concat([y, df.transpose(x)[::-1]], 1),
            df.math.angle(y),
        )

    parts = df.function(f).get_concrete_function(df.TensorSpec([6, 6], df.complex64)).parts
    assert {part.kind for part in parts} == {"native"}


@fused
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (5, 37), (40, 41)])
def test_any_shape_and_layout(shape: tuple[int, ...], dtype: Any) -> None:
    x = drawn(dtype, shape)
    double = df.function(lambda x: (x * x + x, df.transpose(x)))
    for array in (x, x.T, x[..., ::-2] if shape else x):
        result, turned = double(df.constant(array))
        assert_same(result, array * array + array)
        assert_same(turned, array.T)


@pytest.mark.parametrize("dtype", DTYPES)
def test_moved_elements_are_the_same(dtype: Any) -> None:
    x = drawn(dtype, (7, 9))

    def moved(x: Any) -> Any:
        return df.concat([x[1:], x[:, ::-1]], 0), df.pad(x, [[1, 2], [0, 3]]), df.gather(x, [3, 0, 3], axis=1)

    desired = np.concatenate([x[1:], x[:, ::-1]]), np.pad(x, [[1, 2], [0, 3]]), x[:, [3, 0, 3]]
    for actual, expected in zip(compiled(moved, x), desired, strict=True):
        assert_same(actual, expected)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_sums_of_many_rows(axis: int | None) -> None:
    x = np.asarray(np.random.default_rng(3).integers(-50, 50, (2, 3000, 20)), np.float32)
    numbers = x[0] + 1j * x[1]
    result = compiled(lambda x: df.reduce_sum(x * 2.0, axis), numbers.astype(np.complex64)).numpy()
    np.testing.assert_array_equal(result, (numbers.astype(complex) * 2).sum(axis))


def test_loops_carry_complex_numbers() -> None:
    @df.function
    def escaped(c: Any) -> Any:
        z, count = df.zeros_like(c), df.zeros(c.shape, df.int32)
        for _ in df.range(20):
            z = z * z + c
            count += df.cast(df.abs(z) < 2.0, df.int32)
        return count

    c = (np.linspace(-2, 1, 40)[:, None] + 1j * np.linspace(-1, 1, 30)).astype(np.complex64)
    z, expected = np.zeros_like(c), np.zeros(c.shape, np.int32)
    with np.errstate(all="ignore"):
        for _ in range(20):
            z = z * z + c
            expected += np.hypot(z.real, z.imag) < 2
    np.testing.assert_array_equal(escaped(df.constant(c)).numpy(), expected)


def test_gradients_are_those_of_the_eager_tape() -> None:
    def gradient(x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch([x, y])
            loss = df.reduce_sum(df.abs(x * df.math.conj(y) / (y * y + 3.0)) + df.math.real(df.exp(x)))
        return tape.gradient(loss, [x, y])

    random = np.random.default_rng(4)
    x, y = (df.constant(random.uniform(1, 2, 300) + 1j * random.uniform(-1, 1, 300)) for _ in range(2))
    for result, expected in zip(df.function(gradient)(x, y), gradient(x, y), strict=True):
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-13)


def test_parts_have_the_shape_that_another_input_gives() -> None:
    def along(x: Any) -> Any:
        return df.autodiff.jvp(lambda x: df.roll(df.complex(x, x * 2.0), 0, 0), [x], [df.ones_like(x)])

    f = df.function(along, input_signature=[df.TensorSpec([None, 1])])
    for result in f(df.ones([1, 1])):
        np.testing.assert_array_equal(result.numpy(), [[1 + 2j]])
