"""Saved functions with gradients and exceptions that the user wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError

SCALE = df.Variable(2.0)


@df.custom_gradient
def bent(x: Any) -> Any:
    y, z = df.exp(x), df.sin(x) * SCALE

    def grad(dy: Any, variables: Any = None) -> Any:
        return dy * y * 2.0 * z, [df.reduce_sum(dy) * 3.0 for _ in variables]

    return y, grad


@df.custom_gradient
def pair(x: Any, w: Any) -> Any:
    return (x * w, x + w), lambda da, db: (da * w + db, None)


@pytest.mark.parametrize(
    "function", [lambda x: bent(x * 1.5), lambda x: pair(x, x)[0] + bent(x)], ids=["one", "two"]
)
def test_custom_gradients_of_any_order_are_kept(tmp_path, function):
    module = df.Module()
    module.scale = SCALE
    module.f = df.function(function, input_signature=[df.TensorSpec([3])])
    df.saved_model.save(module, tmp_path)
    results = []
    for model in (module, df.saved_model.load(tmp_path)):
        x = df.constant([1.0, 2.0, 3.0])
        with df.GradientTape() as outer:
            outer.watch(x)
            with df.GradientTape() as tape:
                tape.watch(x)
                y = model.f(x)
            first, scale = tape.gradient(y, [x, model.scale])
        results.append([y, first, scale, outer.gradient(first, x)])
    for mine, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, expected)


def test_a_gradient_that_reads_random_numbers_is_refused(tmp_path):
    @df.custom_gradient
    def noisy(x: Any) -> Any:
        noise = df.random.normal([3])
        return x + noise, lambda dy: dy * noise

    module = df.Module()
    module.f = df.function(lambda x: noisy(x), input_signature=[df.TensorSpec([3])])
    with pytest.raises(InvalidArgumentError, match=r"random ops(.|\n)*test_custom_gradients.py"):
        df.saved_model.save(module, tmp_path)


def test_a_gradient_inside_of_a_branch_is_kept(tmp_path):
    module = df.Module()
    module.scale = SCALE
    module.f = df.function(
        lambda x: df.cond(df.reduce_sum(x) > 0.0, lambda: bent(x), lambda: x),
        input_signature=[df.TensorSpec([3])],
    )
    df.saved_model.save(module, tmp_path)
    x, results = df.constant([1.0, 2.0, 3.0]), []
    for model in (module, df.saved_model.load(tmp_path)):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = model.f(x)
        results.append(tape.gradient(y, [x, model.scale]))
    for mine, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, expected)


def test_a_gradient_of_values_inside_of_a_branch_is_refused_with_its_line(tmp_path):
    @df.custom_gradient
    def of_values(x: Any) -> Any:
        return x * 2.0, lambda upstream: upstream * x.numpy()

    module = df.Module()
    module.f = df.function(
        lambda x: df.cond(df.reduce_sum(x) > 0.0, lambda: of_values(x), lambda: x),
        input_signature=[df.TensorSpec([3])],
    )
    with pytest.raises(InvalidArgumentError, match=r"can't be traced(.|\n)*test_custom_gradients.py"):
        df.saved_model.save(module, tmp_path)


def test_exceptions_of_the_user_are_kept_with_their_line(tmp_path):
    def checked(x: Any) -> Any:
        if df.reduce_sum(x) > 0.0:
            raise KeyError("too much")
        df.debugging.assert_less(x, 5.0)
        return x

    module = df.Module()
    module.f = df.function(checked, input_signature=[df.TensorSpec([None])])
    df.saved_model.save(module, tmp_path)
    loaded = df.saved_model.load(tmp_path)
    with pytest.raises(KeyError, match="too much") as raised:
        loaded.f(df.ones([2]))
    assert "test_custom_gradients.py" in "".join(raised.value.__notes__)
    with pytest.raises(InvalidArgumentError, match="Condition x < y did not hold"):
        loaded.f(df.constant([6.0, -9.0]))
    np.testing.assert_array_equal(loaded.f(df.constant([-1.0])), [-1.0])
