"""Learning rates that fall, moving averages, and the optimizers with penalties: TensorFlow 2.21's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

train = v1.train
STEPS = [0, 1, 5, 10, 14, 25, 30]
RATES: list[tuple[Callable[[Any], Any], list[float]]] = [
    (
        lambda s: train.exponential_decay(0.5, s, 10, 0.3),
        [0.5, 0.443284, 0.273861, 0.15, 0.09267, 0.024648, 0.0135],
    ),
    (lambda s: train.exponential_decay(0.5, s, 10, 0.3, True), [0.5, 0.5, 0.5, 0.15, 0.15, 0.045, 0.0135]),
    (
        lambda s: train.natural_exp_decay(0.5, s, 10, 0.3),
        [0.5, 0.485223, 0.430354, 0.370409, 0.328523, 0.236183, 0.203285],
    ),
    (
        lambda s: train.natural_exp_decay(0.5, s, 10, 0.3, True),
        [0.5, 0.5, 0.5, 0.370409, 0.370409, 0.274406, 0.203285],
    ),
    (
        lambda s: train.inverse_time_decay(0.5, s, 10, 0.3),
        [0.5, 0.485437, 0.434783, 0.384615, 0.352113, 0.285714, 0.263158],
    ),
    (
        lambda s: train.inverse_time_decay(0.5, s, 10, 0.3, True),
        [0.5, 0.5, 0.5, 0.384615, 0.384615, 0.3125, 0.263158],
    ),
    (lambda s: train.polynomial_decay(0.5, s, 10, 0.1, 2.0), [0.5, 0.424, 0.2, 0.1, 0.1, 0.1, 0.1]),
    (
        lambda s: train.polynomial_decay(0.5, s, 10, 0.1, 0.5, True),
        [0.5, 0.479473, 0.382843, 0.1, 0.319089, 0.263299, 0.1],
    ),
    (lambda s: train.cosine_decay(0.5, s, 10, 0.1), [0.5, 0.488988, 0.275, 0.05, 0.05, 0.05, 0.05]),
    (
        lambda s: train.cosine_decay_restarts(0.5, s, 8, 2.0, 0.7, 0.1),
        [0.5, 0.482873, 0.188896, 0.353011, 0.267773, 0.269969, 0.25192],
    ),
    (
        lambda s: train.cosine_decay_restarts(0.5, s, 8, 1.0, 0.7),
        [0.5, 0.48097, 0.154329, 0.298744, 0.051256, 0.164973, 0.025116],
    ),
    (
        lambda s: train.linear_cosine_decay(0.5, s, 10, 0.7, 0.1, 0.01),
        [0.555, 0.481207, 0.066832, 0.022275, 0.022275, 0.022275, 0.022275],
    ),
    (lambda s: train.piecewise_constant(s, [5, 14], [1.0, 0.5, 0.1]), [1.0, 1.0, 1.0, 0.5, 0.5, 0.1, 0.1]),
]


@pytest.mark.parametrize(("make", "expected"), RATES)
def test_a_rate_falls_as_tensorflows(make: Callable[[Any], Any], expected: list[float]) -> None:
    step = df.Variable(0, trainable=False)
    rate = make(step)
    eager = [(step.assign(s), float(rate()))[1] for s in STEPS]
    np.testing.assert_allclose(eager, expected, rtol=2e-5, atol=1e-6)
    with v1.Graph().as_default(), v1.Session() as session:
        s = v1.placeholder(v1.int32, [])
        y = make(s)
        np.testing.assert_allclose([session.run(y, {s: n}) for n in STEPS], expected, rtol=2e-5, atol=1e-6)


def test_noise_on_the_rate_falls_too() -> None:
    df.random.set_seed(0)
    rates = [
        np.std([float(train.noisy_linear_cosine_decay(1.0, s, 1000, 1.0, 2.0)()) for _ in range(200)])
        for s in (0, 99)
    ]
    assert 0.8 < rates[0] < 1.2
    assert 0.005 < rates[1] < 0.02


def test_an_optimizer_calls_the_rate_in_each_step() -> None:
    v, step = df.Variable(1.0), df.Variable(0, trainable=False)
    optimizer = train.GradientDescentOptimizer(train.piecewise_constant(step, [0], [1.0, 0.0]))
    for _ in range(3):
        optimizer.minimize(lambda: v * 1.0, global_step=step)
    assert (float(v), int(step)) == (0.0, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *[
            (lambda n=n: getattr(train, n)(0.1, None, 10, 0.5), "`global_step` is required")
            for n in ("exponential_decay", "natural_exp_decay", "inverse_time_decay", "polynomial_decay")
        ],
        *[
            (lambda n=n: getattr(train, n)(0.1, None, 10), "`global_step` is required")
            for n in ("cosine_decay", "cosine_decay_restarts", "linear_cosine_decay")
        ],
        (lambda: train.piecewise_constant(1, [1, 2], [1.0]), "should be 1 less than the length of values"),
        (lambda: train.piecewise_constant(1, [2, 1], [1.0, 2.0, 3.0]), "boundaries must increase"),
        (lambda: train.FtrlOptimizer(0.1, 0.5), "learning_rate_power needs to be less than or equal to zero"),
        (
            lambda: train.FtrlOptimizer(0.1, initial_accumulator_value=-1),
            "initial_accumulator_value needs to",
        ),
        (lambda: train.ProximalAdagradOptimizer(0.1, 0.0), "initial_accumulator_value must be positive"),
        (lambda: train.ProximalGradientDescentOptimizer(0.1, -1), "l1 needs to be greater than or equal"),
        (
            lambda: train.ExponentialMovingAverage(0.9).apply([v1.Variable(1, name="n")]),
            "must be half, float, or double: n:0 is int32",
        ),
    ],
)
def test_bad_arguments_are_errors(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


# Optimizers

GRADIENTS = np.float32([[0.5, -2.0, 0.01], [1.5, 0, 0.02], [-1, 3, -0.01]])
OPTIMIZERS: list[tuple[Callable[[], Any], list[list[float]]]] = [
    (
        lambda: train.AdadeltaOptimizer(0.5, 0.9, 1e-3),
        [[0.950971, 2.049938, -0.054975], [0.884337, 2.049938, -0.064787], [0.937364, 1.990898, -0.059803]],
    ),
    (
        lambda: train.FtrlOptimizer(0.1),
        [[0.380962, 1.786425, -0.003186], [0.287936, 1.786425, -0.009494], [0.340641, 1.703539, -0.006342]],
    ),
    (
        lambda: train.FtrlOptimizer(0.1, l1_regularization_strength=0.5, l2_regularization_strength=0.1),
        [[0.286753, 1.744501, 0.0], [0.194866, 1.744501, 0.0], [0.247021, 1.66207, 0.0]],
    ),
    (
        lambda: train.FtrlOptimizer(0.1, -0.7, 0.2, l2_shrinkage_regularization_strength=0.3),
        [[0.240772, 1.791899, 0.006151], [0.158723, 1.752527, -0.001145], [0.194931, 1.685966, 0.002145]],
    ),
    (
        lambda: train.FtrlOptimizer(0.1, beta=0.5),
        [[0.206466, 1.432656, -0.001235], [0.135459, 1.432656, -0.003683], [0.177171, 1.35983, -0.002459]],
    ),
    (
        lambda: train.ProximalGradientDescentOptimizer(0.1, 0.3, 0.2),
        [[0.901961, 2.127451, -0.020588], [0.707805, 2.056325, -0.0], [0.762554, 1.692475, 0.0]],
    ),
    (
        lambda: train.ProximalAdagradOptimizer(0.1, 0.1, 0.3, 0.2),
        [[0.836497, 2.063574, -0.0], [0.715985, 2.02872, -0.0], [0.745025, 1.926897, 0.0]],
    ),
    (
        lambda: train.ProximalGradientDescentOptimizer(0.1, 0.0, 0.2),
        [[0.931373, 2.156863, -0.05], [0.766052, 2.114571, -0.05098], [0.84907, 1.778992, -0.049]],
    ),
]


@pytest.mark.parametrize(("make", "expected"), OPTIMIZERS)
def test_optimizers_step_as_tensorflows(make: Callable[[], Any], expected: list[list[float]]) -> None:
    v, optimizer = df.Variable([1.0, 2.0, -0.05]), make()
    for gradient, now in zip(GRADIENTS, expected, strict=True):
        optimizer.apply_gradients([(df.constant(gradient), v)])
        np.testing.assert_allclose(v.numpy(), now, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("make", [make for make, _ in OPTIMIZERS])
def test_optimizers_step_alike_in_sessions(make: Callable[[], Any]) -> None:
    v, optimizer = df.Variable([1.0, 2.0, -0.05]), make()
    with v1.Graph().as_default(), v1.Session() as session:
        w, g = v1.Variable([1.0, 2.0, -0.05]), v1.placeholder(v1.float32, [3])
        step = make().apply_gradients([(g, w)])
        session.run(v1.global_variables_initializer())
        for gradient in GRADIENTS:
            session.run(step, {g: gradient})
        result = session.run(w)
    for gradient in GRADIENTS:
        optimizer.apply_gradients([(df.constant(gradient), v)])
    np.testing.assert_allclose(result, v.numpy(), rtol=1e-5, atol=1e-6)


# Moving averages

AVERAGES: list[tuple[dict[str, Any], list[list[float]], list[list[float]]]] = [
    (
        {},
        [[1.1, 2.1], [1.29, 2.29], [1.561, 2.561]],
        [[0.4, 0.6], [0.96, 1.34], [1.664, 2.206]],
    ),
    (
        {"num_updates": 3},
        [[1.69231, 2.69231], [2.59763, 3.59763], [3.5685, 4.5685]],
        [[2.76923, 4.15385], [5.00592, 6.81657], [7.07874, 9.02048]],
    ),
    (
        {"zero_debias": True},
        [[1.1, 2.1], [1.29, 2.29], [1.561, 2.561]],
        [[4.0, 6.0], [5.05263, 7.05263], [6.14022, 8.14022]],
    ),
]


@pytest.mark.parametrize(("options", "of_variable", "of_tensor"), AVERAGES)
def test_averages_move_as_tensorflows(options: Any, of_variable: Any, of_tensor: Any) -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        v = v1.Variable([1.0, 2.0], name="v")
        t = v * 2.0
        averages = train.ExponentialMovingAverage(0.9, **options)
        move, change = averages.apply([v, t]), v.assign_add([1.0, 1.0])
        session.run(v1.global_variables_initializer())
        for expected in zip(of_variable, of_tensor, strict=True):
            session.run(change)
            session.run(move)
            result = session.run([averages.average(v), averages.average(t)])
            np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_averages_move_where_ops_run_now_and_in_a_traced_function() -> None:
    v, averages = v1.Variable(1.0, name="v"), train.ExponentialMovingAverage(0.5)
    assert averages.average(v) is None
    assert averages.average_name(v) == "v/ExponentialMovingAverage"
    averages.apply([v])
    step = df.function(lambda: (v.assign_add(2.0), averages.apply([v]))[0].value())
    step()
    assert float(averages.average(v)) == 2.0


def test_a_checkpoint_gives_averages_to_variables() -> None:
    with v1.Graph().as_default():
        v, w = v1.Variable(1.0, name="v"), v1.Variable(1.0, name="w", trainable=False)
        averages = train.ExponentialMovingAverage(0.9, name="mean")
        averages.apply()
        assert averages.variables_to_restore() == {"v/mean": v, "w": w}
        assert averages.name == "mean"
