"""Known architectures: what they compute, and one step of training, as on Keras's torch backend."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

CHOSEN = os.environ.get("DUALFLOW_KERAS_TESTS", "") in ("most", "all")

# Keras 3.15.1 on torch 2.13, one thread: the first two classes of the first two images, then the losses of
# two steps of training. The dropout of EfficientNetB0 makes its losses random.
RESULTS = {
    "MobileNetV2": ([[0.335821, 0.173235], [0.335821, 0.173235]], [1.575823, 1.606349]),
    "EfficientNetB0": ([[0.183675, 0.204076], [0.183675, 0.204076]], None),
    "ResNet50": ([[0.986420, 0.001558], [0.973199, 0.001862]], [1.784250, 12.088572]),
}


def make(keras: Any, name: str) -> tuple[Any, Any]:
    """The architecture with drawn weights, and four images; NumPy keeps what ``RandomState`` draws."""
    model = getattr(keras.applications, name)(weights=None, input_shape=(64, 64, 3), classes=4)
    drawn = np.random.RandomState(0)

    def weight(shape: tuple[int, ...]) -> Any:
        if len(shape) < 2:
            return drawn.uniform(0.5, 1.5, shape)
        return 0.5 * drawn.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))

    model.set_weights([weight(w.shape) for w in model.weights])
    return model, drawn.uniform(0, 255, (4, 64, 64, 3)).astype(np.float32)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", RESULTS if CHOSEN else ["MobileNetV2"])
def test_an_architecture_computes_what_it_does_on_torch(keras: Any, name: str) -> None:
    model, images = make(keras, name)
    np.testing.assert_allclose(np.asarray(model(images))[:2, :2], RESULTS[name][0], atol=1e-3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("eagerly", [True, False], ids=["eager", "graph"])
@pytest.mark.parametrize("name", RESULTS if CHOSEN else [])
def test_an_architecture_trains_as_on_torch(keras: Any, name: str, eagerly: bool) -> None:
    model, images = make(keras, name)
    model.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy", run_eagerly=eagerly)
    losses = [model.train_on_batch(images, np.arange(4)) for _ in range(2)]
    expected = RESULTS[name][1]
    assert np.isfinite(losses).all()
    if expected is not None:
        np.testing.assert_allclose(losses, expected, rtol=1e-3)
