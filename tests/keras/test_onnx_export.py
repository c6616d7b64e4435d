"""``model.export(path, format="onnx")``: ONNX Runtime computes what the model computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import onnx, run, shapes

RNG = np.random.default_rng(0)


def export(model: Any, folder: Path, **options: Any) -> Any:
    """The model that Keras writes."""
    path = folder / "model.onnx"
    model.export(path, format="onnx", verbose=False, **options)
    return onnx.load(path)


def compare(written: Any, model: Any, x: np.ndarray) -> None:
    (result,) = run(written, [x]).values()
    np.testing.assert_allclose(result, np.asarray(model(x)), rtol=1e-4, atol=1e-5)


def test_a_convolutional_network(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.SeparableConv2D(8, 3, strides=2, padding="same"),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.5),
            layers.Dense(10, activation="softmax"),
        ]
    )
    written = export(model, tmp_path)
    assert {w.path for w in model.weights if "seed" not in w.path} == {
        i.name for i in written.graph.initializer if "/" in i.name
    }
    for batch in (1, 3):
        compare(written, model, RNG.normal(size=(batch, 28, 28, 1)).astype(np.float32))


def test_recurrent_layers_of_any_length(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32", name="words"),
            layers.Embedding(20, 8, mask_zero=True),
            layers.Bidirectional(layers.LSTM(16, return_sequences=True)),
            layers.GRU(8),
            layers.Dense(2),
        ]
    )
    written = export(model, tmp_path)
    assert shapes(written.graph.input) == {"words": ["words_size0", "words_size1"]}
    assert "Scan" in [node.op_type for node in written.graph.node]
    for shape in ((1, 1), (3, 7)):
        compare(written, model, RNG.integers(0, 20, size=shape).astype(np.int32))


def test_a_transformer(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    tokens = keras.Input((7,), dtype="int32")
    h = layers.Embedding(50, 16)(tokens)
    h = layers.LayerNormalization()(h + layers.MultiHeadAttention(4, 4)(h, h, use_causal_mask=True))
    h = layers.LayerNormalization()(h + layers.Dense(16)(layers.Dense(32, activation="gelu")(h)))
    model = keras.Model(tokens, layers.Dense(50)(h))
    written = export(model, tmp_path)
    for batch in (1, 2, 5):
        compare(written, model, RNG.integers(0, 50, size=(batch, 7)).astype(np.int32))


def test_options_of_other_backends_are_refused(keras: Any, tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    with pytest.raises(ValueError, match="opset_version follows from the model's ops"):
        export(model, tmp_path, opset_version=13)
    with pytest.raises(ValueError, match=r"\['optimize'\] are options of other backends"):
        export(model, tmp_path, optimize=True)
