"""``df.test.check_gradients``: right derivatives pass, wrong ones are named with the line that has them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.errors import (
    DualflowError,
    FailedPreconditionError,
    GradientCheckError,
    InvalidArgumentError,
)
from dualflow.ops.record import REGISTRY

X = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4)).astype(np.float32)
SINE = dataclasses.replace(REGISTRY["sin"], name="wrong_sine", vjp=(lambda g, out, x: g * df.cos(x) * 1.01,))


def wrong_sine(x):
    return dispatch.current().apply(SINE, (x,), {})


def network(x):
    return {"y": df.nn.softmax(df.matmul(df.tanh(x), df.transpose(x))), "norm": df.reduce_sum(x**3)}


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev")])
@pytest.mark.parametrize("order", [1, 2])
def test_right_derivatives_pass(modes, order):
    df.test.check_gradients(network, X, order=order, modes=modes)


def test_compiled_functions_are_checked_too():
    df.test.check_gradients(df.function(network), X)


def test_arguments_may_be_structures_of_any_values():
    def f(pair, times, flag):
        return (pair["a"] * df.cast(pair["n"], pair["a"].dtype)) ** times if flag else None

    df.test.check_gradients(f, {"a": X, "n": np.arange(4)}, 2, True, order=2)


def test_complex_numbers_are_checked_along_both_axes():
    z = (X[0] + 1j * X[1]).astype(np.complex64)
    df.test.check_gradients(lambda z: df.abs(df.exp(z) * df.math.conj(z)), z, order=2)


def test_a_wrong_rule_is_named_with_its_line():
    def f(x):
        y = df.exp(x) * 2.0
        return df.reduce_sum(wrong_sine(y) * x)

    with pytest.raises(GradientCheckError) as caught:
        df.test.check_gradients(f, X)
    text = str(caught.value)
    assert "The derivative of f in mode fwd is" in text
    assert "the rule of wrong_sine is wrong at" in text
    assert f'test_check_gradients.py", line {wrong_sine.__code__.co_firstlineno + 1}, in wrong_sine' in text
    assert "wrong_sine(float64[3, 4]): for input 0 it gives" in text


def test_a_wrong_second_derivative_is_one_of_order_two():
    @df.custom_gradient
    def square(x):
        return x * x, lambda g: g * 2.0 * df.stop_gradient(x)

    df.test.check_gradients(square, X)
    with pytest.raises(GradientCheckError, match="The second derivative of square in mode rev"):
        df.test.check_gradients(square, X, order=2, modes=("rev",))


def test_a_stopped_gradient_is_reported_to_be_possible():
    with pytest.raises(GradientCheckError, match="stop a gradient on purpose"):
        df.test.check_gradients(lambda x: x * df.stop_gradient(x), X)


def test_nan_is_no_derivative():
    with pytest.raises(GradientCheckError, match="is nan along"):
        df.test.check_gradients(lambda x: df.sqrt(x * 0.0), X)


REFUSED = {
    "an order": (lambda: df.test.check_gradients(network, X, order=3), InvalidArgumentError, "order 1 or 2"),
    "a mode": (lambda: df.test.check_gradients(network, X, modes=("up",)), InvalidArgumentError, "'fwd' and"),
    "integers": (
        lambda: df.test.check_gradients(df.reduce_sum, [1, 2]),
        InvalidArgumentError,
        "floats or complex numbers",
    ),
    "a tape": (lambda: taped(), FailedPreconditionError, "outside of functions and tapes"),
}


def taped():
    with df.GradientTape():
        df.test.check_gradients(network, X)


@pytest.mark.parametrize("case", REFUSED)
def test_refused_arguments(case):
    call, kind, says = REFUSED[case]
    assert issubclass(kind, DualflowError)
    with pytest.raises(kind, match=says):
        call()
