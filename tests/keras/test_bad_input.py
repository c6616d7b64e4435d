"""Wrong inputs of Keras models: a clear error, and unchanged weights."""

from __future__ import annotations

import traceback
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df

X, Y = np.ones((8, 4), np.float32), np.zeros((8, 3), np.float32)
RUNS = pytest.mark.parametrize("eagerly", [True, False], ids=["eager", "graph"])


def make(keras: Any, **options: Any) -> Any:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(3)])
    model.compile("sgd", **options)
    return model


@contextmanager
def unchanged(model: Any) -> Iterator[None]:
    """Holds that no weight of ``model`` changes in the block."""
    before = [v.numpy() for v in model.variables]
    yield
    for v, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(v.numpy(), value)


@pytest.mark.parametrize(
    ("layer", "built_for", "shape", "message"),
    [
        ("Dense", (8, 4), (8, 5), r"layer 'named'.*axis -1 of input shape to have value 4, .*shape \(8, 5\)"),
        ("Dense", (8, 4), (4,), r"layer 'named'.*expected min_ndim=2, found ndim=1"),
        ("Conv2D", (1, 4, 4, 2), (1, 4, 4, 3), r"layer 'named'.*axis -1 .* value 2, .*shape \(1, 4, 4, 3\)"),
        ("Conv2D", (1, 4, 4, 2), (4, 4, 2), r"layer 'named'.*expected min_ndim=4, found ndim=3"),
        ("Conv2D", (1, 4, 4, 2), (1, 1, 4, 2), r"an empty output.*input is \(1, 1, 4, 2\)"),
    ],
)
@RUNS
def test_a_layer_refuses_an_input_of_another_shape(
    keras: Any,
    layer: str,
    built_for: tuple[int, ...],
    shape: tuple[int, ...],
    message: str,
    eagerly: bool,
) -> None:
    sizes = {"kernel_size": 2} if layer == "Conv2D" else {}
    built = getattr(keras.layers, layer)(3, **sizes, name="named")
    built(np.zeros(built_for, np.float32))
    call = built if eagerly else df.function(built)
    with unchanged(built), pytest.raises(ValueError, match=rf"(?s){message}") as raised:
        call(np.zeros(shape, np.float32))
    assert __file__ in [frame.filename for frame in traceback.extract_tb(raised.tb)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda keras: keras.layers.Dense(3, unis=4), r"passed to Dense: {'unis': 4}"),
        (lambda keras: keras.optimizers.Adam(lr=0.1), r"not recognized: {'lr': 0.1}"),
        (lambda keras: make(keras, metric=["mae"]), "unexpected keyword argument 'metric'"),
        (lambda keras: make(keras, loss="mse").fit(X, Y, epoch=2), "unexpected keyword argument 'epoch'"),
        (lambda keras: make(keras, loss="mse").evaluate(X, Y, verbos=0), "not recognized: {'verbos': 0}"),
    ],
)
def test_an_unknown_keyword_is_named(keras: Any, call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call(keras)


@pytest.mark.parametrize("label", [-1, 3])
@RUNS
def test_a_label_outside_of_the_classes_is_refused(keras: Any, label: int, eagerly: bool) -> None:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = make(keras, loss=loss, run_eagerly=eagerly)
    message = r"a label is outside of \[0, 3\), the classes of the logits"
    with unchanged(model), pytest.raises(df.errors.OutOfRangeError, match=message) as raised:
        model.fit(X, np.full(8, label), verbose=0)
    assert_shows_the_line(raised)


def assert_shows_the_line(raised: pytest.ExceptionInfo[Any]) -> None:
    """The traceback, or the message, has this file; the traceback has nothing of the backend's."""
    files = [frame.filename for frame in traceback.extract_tb(raised.tb)]
    assert __file__ in files
    assert [file for file in files if "keras_dualflow" in file] == []


@RUNS
def test_nan_is_found_where_it_is_made(keras: Any, eagerly: bool) -> None:
    def loss(y: Any, predicted: Any) -> Any:
        return df.reduce_mean(df.math.log(-1.0 - df.square(predicted)))

    model = make(keras, loss=loss, run_eagerly=eagerly)
    df.debugging.enable_check_numerics()
    try:
        with unchanged(model), pytest.raises(df.errors.InvalidArgumentError, match="computed nan") as raised:
            model.fit(X, Y, verbose=0)
    finally:
        df.debugging.disable_check_numerics()
    assert f'File "{__file__}", line {loss.__code__.co_firstlineno + 1}, in ' in str(raised.value)
    assert_shows_the_line(raised)


@RUNS
def test_a_batch_that_memory_does_not_hold_is_refused(keras: Any, eagerly: bool) -> None:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(1),
            layers.Lambda(lambda x: df.sort(df.tile(x, [1, 1 << 44])), output_shape=(1 << 44,)),
            layers.Lambda(lambda x: x[:, :3], output_shape=(3,)),
        ]
    )
    model.compile("sgd", "mse", run_eagerly=eagerly)
    with unchanged(model), pytest.raises(MemoryError, match="17592186044416") as raised:
        model.fit(X, Y, verbose=0)
    assert_shows_the_line(raised)


# Files


def edited(model: Any, folder: Path, old: bytes, new: bytes) -> Path:
    """The saved model with other words in its descriptions."""
    model.save(folder / "model.keras")
    with zipfile.ZipFile(folder / "model.keras") as source, zipfile.ZipFile(folder / "new.keras", "w") as out:
        for name in source.namelist():
            content = source.read(name)
            out.writestr(name, content.replace(old, new) if name.endswith(".json") else content)
    return folder / "new.keras"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"class_name": "Dense"', b'"class_name": "Denser"', "Could not deserialize 'keras.layers.Denser'"),
        (b'"units": 3', b'"units": 3, "sparsity": 2', "Unrecognized keyword arguments.*sparsity"),
    ],
)
def test_a_model_of_another_version_reports_what_is_unknown(
    keras: Any, tmp_path: Path, old: bytes, new: bytes, message: str
) -> None:
    file = edited(make(keras, loss="mse"), tmp_path, old, new)
    with pytest.raises((TypeError, ValueError), match=rf"(?s){message}"):
        keras.models.load_model(file)


def test_a_saved_model_of_tensorflow_s_is_refused(keras: Any, tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ValueError, match=r"Keras 3 only supports V3 `\.keras` files"):
        keras.models.load_model(tmp_path)


@pytest.mark.parametrize(
    ("units", "message"), [([3, 5], r"value.shape=\(3, 5\)"), ([3], "expected 2 variables, but received 0")]
)
def test_weights_of_another_model_change_nothing(
    keras: Any, tmp_path: Path, units: list[int], message: str
) -> None:
    dense = [keras.layers.Dense(n) for n in units]
    keras.Sequential([keras.Input((4,)), *dense]).save_weights(tmp_path / "other.weights.h5")
    model = make(keras, loss="mse")
    with unchanged(model), pytest.raises(ValueError, match=message):
        model.load_weights(tmp_path / "other.weights.h5")
    with unchanged(model), pytest.raises(ValueError, match=r"not compatible with provided weight shape"):
        model.set_weights([np.ones((4, 3)), np.ones(3), np.ones((3, 5)), np.ones(3)])
