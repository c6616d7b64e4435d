"""Gradients where the slope is a matter of rule: at kinks, ties and the edges of domains."""

import math

import numpy as np
import pytest

import dualflow as df


def slope(function, *xs):
    """The gradients of ``function`` at numbers, as Python numbers."""
    tensors = [df.constant(float(x), df.float64) for x in xs]
    with df.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return [None if g is None else float(g) for g in tape.gradient(y, tensors)]


@pytest.mark.parametrize("op", [df.maximum, df.minimum])
def test_a_ties_whole_gradient_goes_to_the_first(op):
    assert slope(op, 1.0, 1.0) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (df.nn.relu, 0.0, 0.0),
        (df.abs, 0.0, 0.0),
        (lambda x: df.maximum(x, 0.0), 0.0, 1.0),
        (lambda x: df.clip_by_value(x, 0.0, 2.0), 0.0, 1.0),
        (lambda x: df.clip_by_value(x, 0.0, 2.0), 2.0, 1.0),
        (lambda x: df.clip_by_value(x, 0.0, 2.0), 2.5, 0.0),
        (df.nn.relu6, 6.0, 0.0),
        (df.nn.elu, 0.0, 1.0),
        (df.nn.elu, math.nan, 1.0),
        (df.nn.selu, 0.0, 1.0507009873554805),
        (df.nn.selu, -0.0, 1.0507009873554805),
        (df.math.expm1, -50.0, math.exp(-50.0)),
        (lambda x: df.math.xlogy(x, 3.0), 0.0, 0.0),
        (lambda x: df.math.xlogy(x, 0.0), 0.0, 0.0),
        (lambda x: df.math.xlogy(x, -1.0), 0.0, 0.0),
        (lambda x: df.math.xlogy(0.0, x), 0.0, 0.0),
        (lambda x: df.math.xlog1py(x, 3.0), 0.0, 0.0),
        (lambda x: df.math.xlog1py(0.0, x), -1.0, 0.0),
        (lambda x: df.math.xdivy(x, 0.0), 0.0, 0.0),
        (lambda x: df.math.xdivy(0.0, x), 0.0, 0.0),
        (df.nn.leaky_relu, 0.0, 0.2),
        (df.sqrt, 0.0, math.inf),
        (df.sign, 3.0, 0.0),
        (lambda x: x % 3.0, 7.0, 1.0),
        (lambda x: df.nn.sigmoid_cross_entropy_with_logits(labels=1.0, logits=x), 0.0, -0.5),
    ],
)
def test_the_slope_at_a_kink(function, at, expected):
    assert slope(function, at) == [expected]


@pytest.mark.parametrize("op", [df.floor, df.round, df.ceil, df.stop_gradient, lambda x: x // 2.0])
def test_no_gradient_flows_through_steps(op):
    assert slope(op, 1.25) == [None]


def test_the_slope_of_a_zeroth_power_at_zero_is_the_nan_of_zero_times_infinity():
    assert math.isnan(slope(lambda x: x**0.0, 0.0)[0])


def test_the_exponent_of_a_negative_base_has_slope_zero():
    assert slope(df.pow, -2.0, 3.0) == [12.0, 0.0]
    assert slope(df.pow, 0.0, 2.0) == [0.0, 0.0]


@pytest.mark.parametrize("op", [df.sqrt, df.rsqrt])
def test_a_zero_cotangent_stops_an_infinite_slope(op):
    assert slope(lambda x: df.where(x > 0.0, op(x), 0.0), 0.0) == [0.0]


def test_a_zero_cotangent_does_not_stop_the_slope_of_log():
    assert math.isnan(slope(lambda x: df.where(x > 0.0, df.math.log(x), 0.0), 0.0)[0])


def test_multiply_no_nan_and_divide_no_nan_are_zero_at_zero():
    assert df.math.multiply_no_nan([math.inf, math.nan, 2.0], [0.0, 0.0, 3.0]).numpy().tolist() == [
        0.0,
        0.0,
        6.0,
    ]
    assert df.math.divide_no_nan([1.0, 6.0], [0.0, 3.0]).numpy().tolist() == [0.0, 2.0]
    assert slope(df.math.divide_no_nan, 1.0, 0.0) == [0.0, 0.0]


@pytest.mark.parametrize("op", [df.math.xlogy, df.math.xlog1py, df.math.xdivy])
@pytest.mark.parametrize("dtype", [df.float16, df.float32, df.float64, df.complex64])
def test_zero_times_anything_is_zero_for_no_nan_ops(op, dtype):
    x, y = df.zeros([5], dtype), df.constant(np.array([0.0, -3.0, -1.0, math.nan, math.inf]))
    for f in (op, df.function(op)):
        assert not np.asarray(f(x, df.cast(y, dtype))).any()
        assert f(x, 2.0).dtype is dtype


def test_equal_extremes_share_the_gradient_of_a_reduction():
    x = df.constant([3.0, 1.0, 3.0])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_max(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [0.5, 0.0, 0.5])


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_the_gradient_of_a_product_is_right_next_to_zeros(zeros):
    x = np.array([2.0, 3.0, 5.0, 7.0])
    x[:zeros] = 0
    tensor = df.constant(x)
    with df.GradientTape() as tape:
        tape.watch(tensor)
        y = df.reduce_prod(tensor)
    np.testing.assert_array_equal(tape.gradient(y, tensor), [np.prod(np.delete(x, i)) for i in range(4)])


def test_the_second_gradient_of_a_variance_sees_the_mean_move():
    x = df.constant([1.0, 2.0, 6.0], df.float64)
    with df.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            y = df.reduce_variance(x)
        g = inner.gradient(y, x)[0]
    np.testing.assert_allclose(outer.gradient(g, x), [2 / 3 - 2 / 9, -2 / 9, -2 / 9])
