"""Special functions by their identities, and at the edges of their domains."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

math, special = df.math, df.math.special
NAN, INF = np.nan, np.inf
POSITIVE = st.floats(0.1, 20)


def close(result, expected, rtol=1e-12, atol=1e-13):
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol)


def double(x):
    return df.constant(x, df.float64)


def slope(function, *xs):
    """The derivatives of a function of numbers, each None or a float."""
    tensors = [double(x) for x in xs]
    with df.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return [None if g is None else float(g) for g in tape.gradient(y, tensors)]


@given(x=POSITIVE)
def test_the_recurrences_of_the_gamma_functions(x):
    x = double(x)
    close(math.lgamma(x + 1), math.lgamma(x) + df.math.log(x), 1e-10)
    close(math.digamma(x + 1), math.digamma(x) + 1 / x, 1e-10)
    close(math.polygamma(1.0, x + 1), math.polygamma(1.0, x) - 1 / x**2, 1e-8)
    close(math.zeta(3.0, x), math.zeta(3.0, x + 1) + x**-3, 1e-10)


@given(n=st.integers(1, 20))
def test_gamma_of_whole_numbers_is_the_factorial(n):
    close(math.lgamma(double(n)), np.sum(np.log(np.arange(1.0, n))), 1e-12)
    close(math.digamma(double(n)), np.sum(1 / np.arange(1.0, n)) - np.euler_gamma, 1e-12)


@given(a=POSITIVE, x=POSITIVE)
def test_the_incomplete_gamma_functions_add_up_to_one(a, x):
    close(math.igamma(double(a), double(x)) + math.igammac(double(a), double(x)), 1)


@given(x=POSITIVE)
def test_incomplete_functions_of_small_orders_are_elementary(x):
    close(math.igamma(double(1.0), double(x)), -np.expm1(-x))
    close(math.igamma(double(0.5), double(x)), math.erf(double(x**0.5)))
    close(math.betainc(double(1.0), double(2.0), double(x / 21)), 1 - (1 - x / 21) ** 2)


@given(a=POSITIVE, b=POSITIVE, x=st.floats(0.01, 0.99))
def test_the_incomplete_beta_function_is_symmetric(a, b, x):
    a, b, x = double(a), double(b), double(x)
    close(math.betainc(a, b, x), 1 - math.betainc(b, a, 1 - x), 1e-9)
    close(math.lbeta(df.stack([a, b])), math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))


@given(p=st.floats(1e-300, 1, exclude_max=True))
def test_error_functions_undo_their_inverses(p):
    """In this direction the rounding of what lies between is not magnified where the functions are flat."""
    close(math.erf(math.erfinv(double(p))), p, atol=0)
    close(math.erfc(math.erfcinv(double(p))), p, 1e-11, atol=0)
    close(math.erfc(-math.ndtri(double(p)) / 2**0.5) / 2, p, 1e-11, atol=0)


@given(x=POSITIVE)
def test_bessel_functions_by_wronskians(x):
    x = double(x)
    close(math.bessel_i0(x) * special.bessel_k1(x) + math.bessel_i1(x) * special.bessel_k0(x), 1 / x, 1e-10)
    j0, j1, y0, y1 = (getattr(special, f"bessel_{name}")(x) for name in ("j0", "j1", "y0", "y1"))
    close(j1 * y0 - j0 * y1, 2 / (np.pi * x), 1e-8)
    for name, way in (("i0", -1), ("i1", -1), ("k0", 1), ("k1", 1)):
        scaled = getattr(special, f"bessel_{name}e")(x)
        close(scaled, getattr(special, f"bessel_{name}")(x) * df.exp(way * x), 1e-10)


@given(x=st.floats(0.1, 3))
def test_integrals_by_their_reflections(x):
    close(special.spence(double(x)) + special.spence(double(1 / x)), -(np.log(x) ** 2) / 2, 1e-9)
    for name in ("dawsn", "fresnel_cos", "fresnel_sin"):
        close(getattr(special, name)(double(-x)), -getattr(special, name)(double(x)))


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (math.lgamma, [[-1.0, 0, INF, -INF, NAN]], [INF, INF, INF, INF, NAN]),
        (math.digamma, [[-1.0, 0, INF, NAN]], [NAN, -INF, INF, NAN]),
        (math.polygamma, [[1.5, -1, 1, 1], [2.0, 2, 0, INF]], [NAN, NAN, INF, 0]),
        (math.zeta, [[1.0, 0.5, 2, 2, 2], [1.0, 1, 0, -2, INF]], [INF, NAN, INF, INF, 0]),
        (math.erfinv, [[1.0, -1, 2, NAN]], [INF, -INF, NAN, NAN]),
        (math.erfcinv, [[0.0, 2, 3]], [INF, -INF, NAN]),
        (math.ndtri, [[0.0, 1, 2, NAN]], [-INF, INF, NAN, NAN]),
        (math.igamma, [[1.0, 1, -1, 1], [0.0, -1, 1, INF]], [0, NAN, NAN, 1]),
        (math.igammac, [[1.0, 1, -1, 1], [0.0, -1, 1, INF]], [1, NAN, NAN, 0]),
        (math.betainc, [[1.0, 2, 1], [2.0, 3, 2], [0.0, 1, 1.5]], [0, 1, NAN]),
        (special.bessel_k0, [[0.0, INF, -1]], [INF, 0, NAN]),
        (special.bessel_y0, [[0.0, -1]], [-INF, NAN]),
        (special.expint, [[0.0, INF]], [-INF, INF]),
        (special.fresnel_cos, [[0.0, INF, -INF]], [0, 0.5, -0.5]),
        (special.spence, [[1.0, -1, INF]], [0, NAN, NAN]),
        (math.lbeta, [np.zeros((2, 0), np.float32)], [-INF, -INF]),
    ],
)
def test_the_edges_of_the_domains(mode, function, arguments, expected):
    np.testing.assert_array_equal(mode(function)(*map(df.constant, arguments)), expected)


@pytest.mark.parametrize("dtype", [df.float16, df.float32, df.float64])
def test_functions_keep_the_dtype_of_floats(mode, dtype):
    x = df.constant([0.5, 0.75], dtype)
    for function in (math.lgamma, math.erfinv, math.bessel_i0e, special.dawsn):
        result = mode(function)(x)
        assert result.dtype is dtype
        close(result, function(df.cast(x, df.float64)), 2 * np.finfo(dtype.dtype).eps)
    assert mode(math.igamma)(x, x).dtype is dtype


def test_integers_become_float32(mode):
    assert mode(math.lgamma)(df.constant([1, 5])).dtype is df.float32


def test_shapes_broadcast(mode):
    assert mode(math.betainc)(df.ones([3, 1]), df.ones([2]), df.constant(0.5)).shape == (3, 2)


# Machine code

ROOTS = np.array([1.0, 2.0, 1.4616321449683622])
SIZES = 10 ** np.random.default_rng(0).uniform(-300, 300, 3000)
ABOVE = [
    np.random.default_rng(1).uniform(0, 40, 9000),
    SIZES,
    (ROOTS * (1 + 1e-5 * np.arange(-50, 51)[:, None])).ravel(),
]


@pytest.mark.parametrize("dtype", [df.float32, df.float64])
@pytest.mark.parametrize("function", [math.lgamma, math.digamma])
def test_the_gamma_functions_are_native_and_agree_with_eager_ones(function, dtype):
    x = df.cast(np.concatenate(ABOVE), dtype)
    f = df.function(function)
    result, expected = f(x).numpy(), function(x).numpy()
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(result[~finite], expected[~finite])
    assert np.all(np.abs(result - expected)[finite] <= 5 * np.spacing(np.abs(expected[finite])))
    assert "numpy:" not in str(f.status())


@pytest.mark.parametrize("function", [math.lgamma, math.digamma])
def test_the_gamma_functions_below_zero_have_all_digits_of_a_number_of_size_one(function):
    x = df.constant(-np.random.default_rng(2).uniform(0, 20, 9000))
    result, expected = df.function(function)(x).numpy(), function(x).numpy()
    away = np.abs(x.numpy() - np.round(x.numpy()))
    assert np.all(
        np.abs(result - expected) <= 2e-14 * np.maximum(1, np.abs(expected)) / np.minimum(1, 20 * away)
    )


@given(away=st.floats(-1e-3, 1e-3))
def test_the_logarithm_of_gamma_keeps_its_digits_at_its_roots(away):
    for root, terms in (
        (1.0, (-np.euler_gamma, np.pi**2 / 12)),
        (2.0, (1 - np.euler_gamma, np.pi**2 / 12 - 0.5)),
    ):
        x = root + away
        t = x - root
        series = t * terms[0] + t**2 * terms[1]
        third = float(math.polygamma(double(2.0), double(root))) / 6
        fourth = float(math.polygamma(double(3.0), double(root))) / 24
        expected = series + t**3 * third + t**4 * fourth
        assert float(math.lgamma(double(x))) == pytest.approx(expected, rel=1e-11, abs=0)


def test_small_and_infinite_arguments_of_the_logarithm_of_gamma(mode):
    x = double([5e-324, 1e-310, INF, -INF])
    np.testing.assert_allclose(mode(math.lgamma)(x), [744.44007192, -np.log(1e-310), INF, INF])


# Gradients at special points, which finite differences can't check


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (math.bessel_i1, [0.0], [0.5]),
        (math.bessel_i1e, [0.0], [0.5]),
        (special.bessel_j1, [0.0], [0.5]),
        (special.spence, [1.0], [-1]),
        (math.polygamma, [1.0, 0.5], [None, -2 * float(math.zeta(double(3.0), double(0.5)))]),
        (math.zeta, [2.0, 0.5], [None, -2 * float(math.zeta(double(3.0), double(0.5)))]),
    ],
)
def test_gradients_where_the_rule_has_a_case(function, at, expected):
    slopes = slope(function, *at)
    for one, desired in zip(slopes, expected, strict=True):
        assert one is desired if desired is None else one == pytest.approx(desired)


@pytest.mark.parametrize(
    ("a", "x", "expected"),
    [(1.0, 0.5, -0.48945752), (2.0, 3.0, -0.19742544), (0.5, 10.0, -3.3719873e-05), (1.0, 0.0, 0.0)],
)
def test_the_derivatives_of_incomplete_gamma_functions_with_respect_to_a_are_tensorflows(a, x, expected):
    assert slope(math.igamma, a, x)[0] == pytest.approx(expected, rel=1e-6)
    assert slope(math.igammac, a, x)[0] == pytest.approx(-expected, rel=1e-6)


@given(a=st.floats(0.05, 200), ratio=st.floats(0.05, 10))
def test_the_derivative_with_respect_to_a_is_that_of_the_values(a, ratio):
    x, h = a * ratio, 1e-4 * a
    points = math.igamma(double([a + 2 * h, a + h, a - h, a - 2 * h]), double(x)).numpy()
    expected = (-points[0] + 8 * points[1] - 8 * points[2] + points[3]) / (12 * h)
    assert slope(math.igamma, a, x)[0] == pytest.approx(expected, rel=1e-5, abs=1e-9)


# Sobol's sequence, as literal values of TensorFlow 2.21


def test_points_of_sobols_sequence(mode):
    points = mode(lambda: math.sobol_sample(2, 4))()
    np.testing.assert_array_equal(points, [[0.5, 0.5], [0.75, 0.25], [0.25, 0.75], [0.375, 0.375]])
    later = [
        [0.75, 0.25, 0.25, 0.25, 0.75],
        [0.25, 0.75, 0.75, 0.75, 0.25],
        [0.375, 0.375, 0.625, 0.875, 0.375],
    ]
    points = math.sobol_sample(5, 3, skip=1, dtype=df.float64)
    np.testing.assert_array_equal(points, np.array(later), strict=True)


def test_points_of_sobols_sequence_fill_the_cube():
    points = math.sobol_sample(6, 1023).numpy()
    assert points.min() > 0
    assert points.max() < 1
    for column in points.T:
        assert len(set(np.floor(column * 1024))) == 1023


def test_scipy_is_imported_by_the_first_function_that_it_computes():
    lines = (
        "import sys, dualflow as df",
        "f = df.math.lgamma",
        "assert 'scipy' not in sys.modules",
        "f([1.0])",
        "assert 'scipy.special' in sys.modules and 'scipy.stats' not in sys.modules",
    )
    ended = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("dtype", [df.float32, df.float64])
def test_lgamma_of_large_negative_numbers_is_infinite_in_both_modes(dtype):
    x = df.constant([-1.7e38, -1e10, -float(2**53), -3.0], dtype)
    largest = df.constant([float(np.finfo(dtype.dtype).min)], dtype)
    for at in (x, largest):
        assert np.all(math.lgamma(at).numpy() == INF)
        assert np.all(df.function(math.lgamma)(at).numpy() == INF)


# By the names of kernels


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_the_gradient_of_a_gamma_number_follows_from_the_implicit_function(alpha: float) -> None:
    scipy_special = pytest.importorskip("scipy.special")
    sample, step = np.float64(1.7), 1e-5
    probability = scipy_special.gammainc(alpha, sample)
    low, high = (scipy_special.gammaincinv(alpha + s, probability) for s in (-step, step))
    gradient = df.raw_ops.RandomGammaGrad(alpha=np.float64(alpha), sample=sample)
    np.testing.assert_allclose(gradient, (high - low) / (2 * step), rtol=1e-4)
    above, below = (scipy_special.gammainc(alpha + s, sample) for s in (step, -step))
    by_order = (above - below) / (2 * step)
    np.testing.assert_allclose(df.raw_ops.IgammaGradA(a=np.float64(alpha), x=sample), by_order, rtol=1e-4)


@pytest.mark.parametrize(
    ("first", "second", "axes"),
    [
        ([2, 3], [2, 3], ([], [])),
        ([2, 1], [3], ([1], [0])),
        ([], [2, 3], ([0, 1], [])),
        ([1, 3], [3], ([], [0])),
    ],
)
def test_a_gradient_is_summed_along_axes_that_were_broadcast(first, second, axes) -> None:
    own, other = df.raw_ops.BroadcastGradientArgs(s0=first, s1=second)
    assert (own.numpy().tolist(), other.numpy().tolist()) == axes
