"""Models and layers whose own ``call`` is a traced function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df

X = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
Y = X[:, :1]


def dense_of(keras: Any, **options: Any) -> Any:
    """A layer whose ``call`` is traced, and which tests a tensor."""

    class Folded(keras.layers.Layer):  # type: ignore[misc,name-defined]  # Keras has no types
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(shape=(shape[-1], 2), initializer=keras.initializers.GlorotUniform(1))

        @df.function
        def call(self, x: Any, training: bool = False) -> Any:
            if df.reduce_sum(x) < 0.0:
                x = -x
            return df.matmul(x, self.w) + (1.0 if training else 0.0)

    return Folded(**options)


def model_of(keras: Any, **options: Any) -> Any:
    """A model whose ``call`` is traced; its layers are built by the first call."""

    class Traced(keras.Model):  # type: ignore[misc,name-defined]  # Keras has no types
        def __init__(self, **named: Any) -> None:
            super().__init__(**named)
            self.hidden = keras.layers.Dense(3, kernel_initializer=keras.initializers.GlorotUniform(1))
            self.dropout = keras.layers.Dropout(0.5, seed=1)
            self.last = keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(2))

        @df.function(**options)
        def call(self, x: Any, training: bool = False) -> Any:
            return self.last(self.dropout(self.hidden(x), training=training))

    return Traced()


SPEC = [df.TensorSpec([None, 4])]


@pytest.mark.parametrize("options", [{}, {"input_signature": SPEC}, {"reduce_retracing": True}])
def test_a_model_is_what_its_weights_make_it(keras: Any, options: dict[str, Any]) -> None:
    """The trace reads the variables, not what they are initialised with."""
    model = model_of(keras, **options)
    model(X)
    for layer, value in ((model.hidden, 0.5), (model.last, 2.0)):
        layer.kernel.assign(df.fill(layer.kernel.shape, value))
    np.testing.assert_allclose(model(X).numpy(), 3.0 * X.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)
    with df.GradientTape() as tape:
        loss = df.reduce_sum(model(X))
    gradients = tape.gradient(loss, model.trainable_variables)
    np.testing.assert_allclose(gradients[2].numpy(), np.full((3, 1), 0.5 * X.sum()), rtol=1e-4, atol=1e-5)


def test_a_keyword_chooses_the_trace(keras: Any) -> None:
    layer = dense_of(keras)
    np.testing.assert_allclose(layer(X, training=True).numpy(), layer(X).numpy() + 1.0, rtol=1e-6)
    np.testing.assert_allclose(layer(-abs(X)).numpy(), layer(abs(X)).numpy(), rtol=1e-6)


@pytest.mark.parametrize("eager", [False, True])
def test_fit_evaluate_and_predict_are_those_of_the_same_model_untraced(keras: Any, eager: bool) -> None:
    def trained(traced: bool) -> list[Any]:
        model = model_of(keras)
        if not traced:
            model.call = type(model).call.python_function.__get__(model)
        model.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=eager)
        losses = model.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"]
        return [losses, model.evaluate(X, Y, verbose=0), model.predict(X, verbose=0)]

    for result, expected in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)


def test_layers_in_sequential_and_functional_models(keras: Any) -> None:
    layer = dense_of(keras)
    start = keras.Input((4,))
    models = keras.Model(start, layer(start)), keras.Sequential([keras.Input((4,)), layer])
    for model in models:
        assert model.output_shape == (None, 2)
        np.testing.assert_allclose(model(abs(X)).numpy(), abs(X) @ layer.w.numpy(), rtol=1e-5)


def test_saved_and_loaded(keras: Any, tmp_path: Path) -> None:
    kinds = {"Folded": type(dense_of(keras)), "Traced": type(model_of(keras))}
    functional = keras.Sequential([keras.Input((4,)), dense_of(keras)])
    subclassed = model_of(keras)
    for i, model in enumerate((functional, subclassed)):
        expected = model(X).numpy()
        model.save(tmp_path / f"{i}.keras")
        result = keras.models.load_model(tmp_path / f"{i}.keras", custom_objects=kinds)
        np.testing.assert_array_equal(result(X).numpy(), expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_stateless_call_takes_the_values_it_is_given(keras: Any, compiled: bool) -> None:
    """The values of one call are in no trace that another call finds."""
    layer = dense_of(keras)
    layer.build((None, 4))

    def call(w: Any) -> Any:
        return layer.stateless_call([w], [], abs(X))[0]

    f = df.function(call) if compiled else call
    for w in np.float32([[[1, 2]] * 4, [[3, 4]] * 4]):
        np.testing.assert_allclose(f(df.constant(w)).numpy(), abs(X) @ w, rtol=1e-5)
    np.testing.assert_allclose(layer(abs(X)).numpy(), abs(X) @ layer.w.numpy(), rtol=1e-5)


def test_a_training_step_of_ones_own(keras: Any) -> None:
    model, optimizer = model_of(keras), keras.optimizers.SGD(0.1)
    model(X)
    optimizer.build(model.trainable_variables)

    @df.function
    def step(x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            loss = df.reduce_mean((model(x) - y) ** 2)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    losses = [float(step(X, Y)) for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]
