"""Training loops that people write themselves, around models and optimizers of Keras."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

X = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)


def step_of(keras: Any) -> Any:
    """A step of gradient descent on a new model, the same each time."""
    start = keras.initializers.GlorotUniform(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer=start)])
    optimizer, loss_of = keras.optimizers.Adam(0.1), keras.losses.MeanSquaredError()
    optimizer.build(model.trainable_weights)

    def step(x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        weights = model.trainable_weights
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    return step


def test_a_step_is_the_same_compiled(keras: Any) -> None:
    eager, compiled = step_of(keras), df.function(step_of(keras))
    losses = np.array([[eager(X, Y).numpy(), compiled(X, Y).numpy()] for _ in range(20)])
    np.testing.assert_allclose(losses[:, 1], losses[:, 0], rtol=1e-4)
    assert losses[-1, 0] < 0.5 * losses[0, 0]


def test_conversion_leaves_keras_as_it_is_written(keras: Any) -> None:
    """To convert a function takes many times as long as to trace it, and Keras has hundreds of them."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    def traced(step: Any, **options: Any) -> int:
        """The calls of Python functions in a trace."""
        nonlocal calls
        calls, before = 0, sys.getprofile()
        sys.setprofile(count)
        try:
            df.function(step, **options).get_concrete_function(df.TensorSpec([16, 4]), df.TensorSpec([16, 1]))
        finally:
            sys.setprofile(before)
        return calls

    step = step_of(keras)
    as_written = traced(step, autograph=False)
    assert traced(step) < 2 * as_written


def test_a_layer_that_tests_a_tensor_reports_where(keras: Any) -> None:
    class Folded(keras.layers.Layer):  # type: ignore[misc,name-defined]  # Keras has no types
        def call(self, x: Any) -> Any:
            return -x if df.reduce_sum(x) < 0.0 else x

    folded = Folded()
    np.testing.assert_array_equal(folded(df.constant([-1.0])).numpy(), [1.0])
    np.testing.assert_array_equal(df.function(lambda x: folded.call(x))(df.constant([-1.0])).numpy(), [1.0])
    with pytest.raises(df.errors.OperatorNotAllowedInGraphError, match=r"(?s)test_own_loops.*df\.cond"):
        df.function(lambda x: folded(x))(df.constant([-1.0]))


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "Nadam", "AdamW"])
def test_an_optimizer_updates_a_variable_of_float64_in_float64(keras: Any, name: str) -> None:
    steps = []
    for dtype in (df.float64, df.float32):
        variable, optimizer = df.Variable(0.5, dtype=dtype), getattr(keras.optimizers, name)(0.25)
        for _ in range(3):
            optimizer.apply_gradients([(df.constant(1.0 / 3.0, dtype), variable)])
        assert variable.dtype is dtype
        steps.append(variable.numpy())
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-5)
    assert np.float32(steps[0]) != steps[0]


def test_a_model_has_the_variables_of_version_1_s_layers(keras: Any) -> None:
    class Linear(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = v1.layers.Dense(2)
            self.scale = keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.scale(self.hidden(x))

    model = Linear()
    model(df.ones([3, 4]))
    assert [tuple(v.shape) for v in model.variables] == [(2, 1), (1,), (4, 2), (2,)]
    assert len(model.trainable_variables) == len(model.weights) == 4
    assert len({id(v) for v in model.variables}) == 4


@pytest.mark.parametrize("masked", [False, True])
def test_a_layer_is_applied_to_each_of_any_number_of_time_steps(keras: Any, masked: bool) -> None:
    """Whatever the batch size: Keras iterates over that where the trace has no number of time steps."""
    start, layers = keras.initializers.GlorotUniform(1), keras.layers
    inner = layers.TimeDistributed(layers.Dense(1, kernel_initializer=start))
    masking = [layers.Masking()] if masked else []
    model = keras.Sequential([keras.Input((None, 2)), *masking, inner])
    compiled = df.function(lambda x: model(x))
    for shape in ((3, 2, 2), (3, 4, 2), (2, 4, 2), (2, 1, 2), (1, 5, 2)):
        x = np.resize(X, shape)
        np.testing.assert_array_equal(compiled(x), model(x))


def test_a_mask_that_does_not_fit_the_time_steps_is_refused(keras: Any) -> None:
    layer = keras.layers.TimeDistributed(keras.layers.Dense(1))
    layer.build((None, None, 2))
    for mask in (df.TensorSpec([None], df.bool), df.TensorSpec([4, None], df.bool)):
        traced = df.function(lambda x, mask: layer(x, mask=mask))
        with pytest.raises(ValueError, match="`mask` passed"):
            traced.get_concrete_function(df.TensorSpec([3, None, 2]), mask)
