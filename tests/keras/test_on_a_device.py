"""Keras on a device: training and prediction of a model that is built in a block of ``df.device``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opencl_driver import use_backend

import dualflow as df

X = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)


def trained(keras: Any, device: str) -> tuple[list[float], Any, set[str]]:
    """The losses of a model that is trained on a device, its predictions, and where its variables are."""
    with df.device(device):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.05), "mse")
        losses = model.fit(X, X[:, :1], epochs=2, batch_size=32, verbose=0).history["loss"]
        return losses, model.predict(X, verbose=0), {w.value.device for w in model.weights}


@pytest.mark.opencl
@pytest.mark.exhaustive
def test_a_model_is_trained_on_the_device(keras: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use_backend("opencl", monkeypatch)
    (losses, predictions, devices), expected = trained(keras, "/gpu:0"), trained(keras, "/cpu:0")
    assert (devices, expected[2]) == (
        {"/job:localhost/replica:0/task:0/device:GPU:0"},
        {"/job:localhost/replica:0/task:0/device:CPU:0"},
    )
    np.testing.assert_allclose(losses, expected[0], rtol=1e-4)
    np.testing.assert_allclose(predictions, expected[1], rtol=1e-3, atol=1e-4)
