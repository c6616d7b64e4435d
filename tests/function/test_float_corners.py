"""Powers and gelu at infinities, zeros and where results are small: the same eagerly and compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

FLOATS = [df.float16, df.float32, df.float64]
BASES = [-math.inf, -4.0, -0.0, 0.0, 4.0, math.inf, math.nan]


def same(result: Any, expected: list[float]) -> bool:
    """Whether all are equal, zeros in their signs too."""
    values = result.numpy()
    signs = np.signbit(values) == np.signbit(np.array(expected))
    return np.array_equal(values, expected, equal_nan=True) and bool((signs | np.isnan(values)).all())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    ("exponent", "powers"),
    [
        (0.5, [math.inf, math.nan, 0.0, 0.0, 2.0, math.inf, math.nan]),
        (-0.5, [0.0, math.nan, math.inf, math.inf, 0.5, 0.0, math.nan]),
        (2.0, [math.inf, 16.0, 0.0, 0.0, 16.0, math.inf, math.nan]),
        (3.0, [-math.inf, -64.0, -0.0, 0.0, 64.0, math.inf, math.nan]),
        (-1.0, [-0.0, -0.25, -math.inf, math.inf, 0.25, 0.0, math.nan]),
        (0.0, [1.0] * 7),
    ],
)
def test_powers_are_those_of_ieee(mode: Any, dtype: df.DType, exponent: float, powers: list[float]) -> None:
    """NumPy takes the square root for one exponent of 0.5: nan for -inf, and -0.0 for -0.0."""
    x = df.constant(BASES, dtype)
    assert same(mode(lambda x: x**exponent)(x), powers)
    for y in ([exponent], exponent, [[exponent]]):
        assert same(df.reshape(mode(df.pow)(x, df.constant(y, dtype)), [-1]), powers)
    assert same(mode(df.pow)(x, df.fill([7], df.constant(exponent, dtype))), powers)


def test_rows_have_exponents_of_their_own(mode: Any) -> None:
    x = df.constant([[-math.inf, -0.0]] * 2)
    y = df.constant([[0.5], [3.0]])
    assert same(mode(df.pow)(x, y)[0], [math.inf, 0.0])
    assert same(mode(df.pow)(x, y)[1], [-math.inf, -0.0])
    by_columns = mode(df.pow)(df.transpose(x), df.constant([0.5, 3.0]))
    assert same(by_columns[0], [math.inf, -math.inf])
    assert same(by_columns[1], [0.0, -0.0])


def test_a_scalar_to_the_power_of_a_half() -> None:
    assert same(df.constant(-math.inf) ** 0.5, math.inf)  # type: ignore[arg-type]  # one number
    assert (df.constant(-math.inf) ** 0.5).shape == ()
    assert (df.constant([-4 + 0j]) ** 0.5).numpy()[0] == pytest.approx(2j)


# gelu, whose small values need the tail of the normal distribution: 1 + erf(x) has none of their digits.

SMALL = {x: 0.5 * x * math.erfc(-x * math.sqrt(0.5)) for x in (-12.0, -6.0, -3.0, -1.0, 0.5, 3.0)}


@pytest.mark.parametrize(("dtype", "within"), [(df.float32, 6e-7), (df.float64, 1e-13)], ids=str)
def test_gelu_keeps_its_small_values(mode: Any, dtype: df.DType, within: float) -> None:
    result = mode(df.nn.gelu)(df.constant(list(SMALL), dtype)).numpy()
    np.testing.assert_allclose(result, list(SMALL.values()), rtol=within)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_far_out(mode: Any, dtype: df.DType, approximate: bool) -> None:
    def gelu(x: Any) -> Any:
        return df.nn.gelu(x, approximate=approximate)

    x = df.constant([-math.inf, -1000.0, -100.0, -0.0, 0.0, 1000.0, math.inf, math.nan], dtype)
    expected = [math.nan, -0.0, -0.0, -0.0, 0.0, 1000.0, math.inf, math.nan]
    assert same(mode(gelu)(x), expected)


@pytest.mark.parametrize("dtype", [df.float32, df.float64], ids=str)
def test_erf_is_1_from_where_it_rounds_to_it(mode: Callable[..., Any], dtype: df.DType) -> None:
    x = [5.93, 6.0, 7.0, 100.0, 1e30, math.inf]
    assert same(mode(df.math.erf)(df.constant(x, dtype)), [1.0] * 6)
    assert same(mode(df.math.erf)(df.constant([-number for number in x], dtype)), [-1.0] * 6)
