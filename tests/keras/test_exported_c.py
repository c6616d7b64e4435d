"""Keras models as C programs, compiled with GCC: predictions, and a training step on the caller's weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required_tools import require_tool

import dualflow as df
from dualflow.core.errors import InvalidArgumentError
from tests.harness.c_programs import call, compiled, program_of

RNG = np.random.default_rng(0)
require_tool("gcc")
Array = np.ndarray[Any, Any]


def conv_net(keras: Any) -> tuple[Any, Array]:
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((12, 12, 1)),
            layers.Conv2D(4, 3, activation="relu", padding="same"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Conv2D(8, 3, activation="gelu"),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5, activation="softmax"),
        ]
    )
    return model, RNG.normal(size=(3, 12, 12, 1)).astype(np.float32)


def lstm(keras: Any) -> tuple[Any, Array]:
    layers = keras.layers
    model = keras.Sequential(
        [layers.Input((None,), dtype="int32"), layers.Embedding(20, 6), layers.LSTM(8), layers.Dense(2)]
    )
    return model, RNG.integers(0, 20, (3, 7)).astype(np.int32)


def transformer(keras: Any) -> tuple[Any, Array]:
    layers = keras.layers
    x = inputs = keras.Input((6, 8))
    attended = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = layers.LayerNormalization()(x + attended)
    hidden = layers.Dense(8)(layers.Dense(16, activation="gelu")(x))
    x = layers.LayerNormalization()(x + hidden)
    return keras.Model(inputs, layers.Dense(5, activation="softmax")(x)), RNG.normal(size=(3, 6, 8)).astype(
        "f"
    )


@pytest.mark.parametrize("build", [conv_net, lstm, transformer])
def test_a_model_for_all_batch_sizes_predicts_in_c_what_it_predicts_in_python(
    keras: Any, tmp_path: Path, build: Any
) -> None:
    model, x = build(keras)

    @df.function
    def predict(x: Any) -> Any:
        return model(x, training=False)

    concrete = predict.get_concrete_function(df.TensorSpec([None, *x.shape[1:]], x.dtype, name="x"))
    program = program_of(concrete)
    weights = [np.array(v) for v in concrete.variables]
    (result,) = call(
        compiled([program], tmp_path, options="-Wall -Wextra -Werror -O1"), program, [x, *weights]
    )
    np.testing.assert_allclose(result, np.asarray(model(x, training=False)), rtol=1e-4, atol=1e-5)


def test_a_product_that_may_broadcast_is_refused_for_all_sizes_by_name_and_line() -> None:
    open_rows = df.TensorSpec([None, 3])
    product = df.function(lambda x, y: df.einsum("...i,...i->...", x, y))
    concrete = product.get_concrete_function(open_rows, open_rows)
    with pytest.raises(InvalidArgumentError, match=r"Fix the sizes of arguments. It is einsum\n.*line"):
        program_of(concrete)


def test_a_training_step_of_an_optimizer_updates_weights_of_the_caller(keras: Any, tmp_path: Path) -> None:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(6, "tanh"), keras.layers.Dense(3)])
    optimizer = keras.optimizers.Adam(0.05)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @df.function
    def step(x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    concrete = step.get_concrete_function(df.TensorSpec([None, 4]), df.TensorSpec([None], "int32"))
    program = program_of(concrete)
    library = compiled([program], tmp_path, options="-Wall -Wextra -Werror -O1")
    own = [np.array(v) for v in concrete.variables]
    x, y = RNG.normal(size=(16, 4)).astype(np.float32), RNG.integers(0, 3, 16).astype(np.int32)
    for _ in range(5):
        (loss,) = call(library, program, [x, y, *own])
        np.testing.assert_allclose(loss, np.asarray(step(x, y)), rtol=1e-4)
    for array, variable in zip(own, concrete.variables, strict=True):
        np.testing.assert_allclose(array, np.asarray(variable), rtol=1e-3, atol=1e-4)
