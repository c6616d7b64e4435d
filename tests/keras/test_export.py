"""``model.export(folder)``: Keras models as saved models of dualflow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df

IMAGES = np.random.default_rng(0).uniform(size=(5, 8, 8, 1)).astype(np.float32)


@pytest.fixture(scope="module")
def keras() -> Any:
    return df.keras


@pytest.fixture
def classifier(keras: Any) -> Any:
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.MaxPooling2D(),
            keras.layers.Dropout(0.3),
            keras.layers.Flatten(),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )


def test_an_exported_model_predicts_as_the_model(classifier: Any, tmp_path: Path) -> None:
    classifier.export(tmp_path, verbose=False)
    loaded = df.saved_model.load(tmp_path)
    expected = classifier.predict(IMAGES, verbose=0)
    np.testing.assert_array_equal(loaded.serve(IMAGES), expected)
    (name,) = loaded.signatures["serving_default"].structured_input_signature[1]
    result = loaded.signatures["serving_default"](**{name: df.constant(IMAGES)})
    np.testing.assert_array_equal(result["output_0"], expected)
    assert len(loaded.trainable_variables) == len(classifier.trainable_variables)


def test_an_exported_model_is_loaded_without_keras(classifier: Any, tmp_path: Path) -> None:
    classifier.export(tmp_path, verbose=False)
    program = (
        "import sys, dualflow as df; m = df.saved_model.load(sys.argv[1]); "
        "print(m.serve(df.zeros([2, 8, 8, 1])).shape, 'keras' in sys.modules)"
    )
    command = [sys.executable, "-c", program, os.fspath(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout.strip() == "(2, 3) False"


def test_recurrent_and_subclassed_models_are_exported(keras: Any, tmp_path: Path) -> None:
    class Text(keras.Model):  # type: ignore[misc, name-defined]  # Keras has no types
        def __init__(self) -> None:
            super().__init__()
            self.embed = keras.layers.Embedding(10, 4)
            self.lstm = keras.layers.LSTM(5)
            self.dense = keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.dense(self.lstm(self.embed(x)))

    model = Text()
    words = np.random.default_rng(1).integers(0, 10, (3, 7)).astype(np.float32)
    expected = model(words)
    model.export(tmp_path, verbose=False)
    np.testing.assert_allclose(df.saved_model.load(tmp_path).serve(words), expected, rtol=1e-5)


def test_an_archive_has_several_endpoints_and_collections(
    keras: Any, classifier: Any, tmp_path: Path
) -> None:
    archive = keras.export.ExportArchive()
    archive.track(classifier)
    spec = [keras.InputSpec(shape=(None, 8, 8, 1), dtype="float32")]
    archive.add_endpoint("infer", lambda x: classifier(x, training=False), spec)
    archive.add_endpoint("train", lambda x: classifier(x, training=True), [df.TensorSpec([4, 8, 8, 1])])
    archive.add_variable_collection("head", classifier.layers[-1].variables)
    archive.write_out(tmp_path, verbose=False)
    loaded = df.saved_model.load(tmp_path)
    assert set(loaded.signatures) == {"infer", "train", "serving_default"}
    np.testing.assert_array_equal(loaded.head[0], classifier.layers[-1].kernel)
    assert loaded.train(IMAGES[:4]).shape == [4, 3]


def test_an_archive_without_endpoints_is_an_error(keras: Any, classifier: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No endpoints"):
        keras.export.ExportArchive().write_out(tmp_path)
    archive = keras.export.ExportArchive()
    archive.track_and_add_endpoint("serve", classifier, [df.TensorSpec([None, 8, 8, 1])])
    with pytest.raises(ValueError, match="already taken"):
        archive.add_endpoint("serve", classifier, [df.TensorSpec([None, 8, 8, 1])])
    with pytest.raises(ValueError, match="input_signature"):
        archive.add_endpoint("other", lambda x: x)
