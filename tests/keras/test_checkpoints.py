"""Checkpoints of Keras models and optimizers: found by their attributes, also those that are built later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df


def test_a_model_that_is_not_built_yet_goes_on_where_the_saved_one_was(keras: Any, tmp_path: Path) -> None:
    """To the same losses to the bit, with the optimizer's slots and the state of the dropout."""

    def compiled() -> Any:
        layers = [keras.layers.Dense(4, activation="relu"), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
        model = keras.Sequential(layers)
        model.compile("adam", "mse")
        return model

    random = np.random.default_rng(0)
    x = random.random((64, 3), np.float32)
    y = x.sum(axis=1, keepdims=True)
    first = compiled()
    first.fit(x, y, verbose=0)
    path = df.train.Checkpoint(model=first, optimizer=first.optimizer).save(tmp_path / "c")
    expected = first.fit(x, y, shuffle=False, verbose=0).history["loss"]
    other = compiled()
    status = df.train.Checkpoint(model=other, optimizer=other.optimizer).restore(path)
    assert len(status.pending) >= 4
    assert other.fit(x, y, shuffle=False, verbose=0).history["loss"] == expected
    status.assert_consumed()


@pytest.mark.parametrize("eagerly", [False, True])
def test_layers_built_after_a_restore_are_numbered_from_zero(
    keras: Any, tmp_path: Path, eagerly: bool
) -> None:
    """Keras builds the metrics of ``compile``, and the means of several losses, in the first step."""

    def compiled() -> Any:
        x = keras.Input((3,))
        outputs = {name: keras.layers.Dense(1, name=name)(x) for name in ("one", "two")}
        model = keras.Model(x, outputs)
        model.compile("sgd", "mse", metrics={"one": ["mae"]}, run_eagerly=eagerly)
        return model

    random = np.random.default_rng(0)
    x = random.random((40, 3), np.float32)
    y = {"one": np.full((40, 1), 5, np.float32), "two": np.full((40, 1), -5, np.float32)}
    first = compiled()
    first.fit(x, y, verbose=0)
    path = df.train.Checkpoint(model=first).save(tmp_path / "c")
    other = compiled()
    df.train.Checkpoint(model=other).restore(path)
    logs = other.evaluate(x, y, batch_size=40, verbose=0, return_dict=True)
    errors = {name: result - y[name] for name, result in other.predict(x, verbose=0).items()}
    assert logs["one_mae"] == pytest.approx(np.mean(np.abs(errors["one"])))
    assert logs["two_loss"] == pytest.approx(np.mean(errors["two"] ** 2))


def test_a_variable_of_kerass_is_a_value_of_its_own(keras: Any, tmp_path: Path) -> None:
    """Under the layer's attribute, so that a checkpoint can be read and restored without the model."""
    layer = keras.layers.Dense(2)
    layer.build((None, 3))
    layer.bias.assign([1.0, 2.0])
    path = df.train.Checkpoint(layer=layer, rate=keras.Variable(0.5)).save(tmp_path / "c")
    shapes = dict(df.train.list_variables(path))
    value = ".ATTRIBUTES/VARIABLE_VALUE"
    assert {name for name in shapes if name != f"save_counter/{value}"} >= {
        f"layer/bias/{value}",
        f"rate/{value}",
    }
    assert not [name for name in shapes if "_value/" in name]
    bias = df.Variable([0.0, 0.0])
    part = df.train.Checkpoint(bias=bias)
    df.train.Checkpoint(layer=part).restore(path).expect_partial()
    assert bias.numpy().tolist() == [1.0, 2.0]
