"""Keras's loaders of folders and arrays give datasets of df.data, with TensorFlow 2.21's elements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required_tools import require_module

import dualflow as df

Image = require_module("PIL.Image")
CLASSES = ["cats", "dogs"]
FORMATS = ["png", "bmp", "gif", "jpg", "png"]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder of two classes, each of images of one grey and of several formats and sizes."""
    for label, name in enumerate(CLASSES):
        (tmp_path / name).mkdir()
        for i, kind in enumerate(FORMATS):
            grey = np.full((8 + i, 12, 3), 20 * i + 100 * label, np.uint8)
            Image.fromarray(grey).save(tmp_path / name / f"{i}.{kind}")
    return tmp_path


def of_folder(keras: Any, folder: Path, **options: Any) -> Any:
    defaults = {"image_size": (6, 4), "batch_size": 4, "verbose": False, "shuffle": False}
    return keras.utils.image_dataset_from_directory(folder, **{**defaults, **options})


def test_images_of_a_folder(keras: Any, images: Path) -> None:
    dataset = of_folder(keras, images)
    assert isinstance(dataset, df.data.Dataset)
    assert dataset.class_names == CLASSES
    assert [Path(path).name for path in dataset.file_paths] == [f"{i}.{x}" for i, x in enumerate(FORMATS)] * 2
    pixels, labels = (np.concatenate(parts) for parts in zip(*dataset, strict=True))
    assert pixels.shape == (10, 6, 4, 3)
    greys = [20 * i + j for j in (0, 100) for i in range(5)]
    np.testing.assert_allclose(pixels.mean((1, 2, 3)), greys, atol=1)
    assert labels.tolist() == [0] * 5 + [1] * 5
    assert [len(x) for x, _ in dataset.cache().prefetch(df.data.AUTOTUNE)] == [4, 4, 2]


@pytest.mark.parametrize(
    ("options", "shape", "dtype"),
    [
        ({"color_mode": "grayscale"}, (6, 4, 1), df.float32),
        ({"color_mode": "rgba"}, (6, 4, 4), df.float32),
        ({"data_format": "channels_first"}, (3, 6, 4), df.float32),
        ({"crop_to_aspect_ratio": True}, (6, 4, 3), df.float32),
        ({"pad_to_aspect_ratio": True}, (6, 4, 3), df.float32),
        ({"interpolation": "nearest"}, (6, 4, 3), df.uint8),
    ],
)
def test_the_images_have_a_static_shape(
    keras: Any, images: Path, options: dict[str, Any], shape: tuple[int, ...], dtype: Any
) -> None:
    dataset = of_folder(keras, images, label_mode=None, batch_size=None, **options)
    assert (dataset.element_spec.shape, dataset.element_spec.dtype) == (shape, dtype)
    assert {(*x.shape, x.dtype) for x in dataset} == {(*shape, dtype)}


def test_padding_keeps_the_ratio_and_cropping_fills_the_image(keras: Any, images: Path) -> None:
    padded, cropped = (
        next(iter(of_folder(keras, images / "dogs", labels=None, **{option: True})))[0].numpy()
        for option in ("pad_to_aspect_ratio", "crop_to_aspect_ratio")
    )
    assert (padded[0] == 0).all()  # rows above an image that is wider than high
    assert (cropped > 90).all()


def test_a_validation_split_divides_the_files(keras: Any, images: Path) -> None:
    split = {"validation_split": 0.3, "shuffle": True, "seed": 3}
    training, validation = of_folder(keras, images, subset="both", **split)
    assert (len(training.file_paths), len(validation.file_paths)) == (7, 3)
    assert not {*training.file_paths} & {*validation.file_paths}
    assert sum(len(labels) for _, labels in training) == 7
    alone = of_folder(keras, images, subset="validation", **split)
    assert alone.file_paths == validation.file_paths


def test_a_shuffled_dataset_pairs_images_with_their_labels(keras: Any, images: Path) -> None:
    dataset = of_folder(keras, images, shuffle=True, seed=1, label_mode="binary")
    epochs = [[(x.numpy().mean().round(), y.numpy().item()) for x, y in dataset.unbatch()] for _ in range(2)]
    assert all((grey >= 99) == (label == 1) for grey, label in epochs[0])
    assert sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] != epochs[1]


def test_a_model_trains_on_a_folder(keras: Any, images: Path) -> None:
    layers = [keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(2)]
    model = keras.Sequential(layers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.1), loss, metrics=["accuracy"])
    history = model.fit(of_folder(keras, images).cache(), epochs=8, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]


def test_an_image_that_is_damaged_is_an_error_with_its_reason(keras: Any, images: Path) -> None:
    (images / "cats" / "5.png").write_bytes((images / "cats" / "0.png").read_bytes()[:40])
    with pytest.raises(df.errors.InvalidArgumentError, match="damaged or cut off"):
        list(of_folder(keras, images))


def test_texts_of_a_folder(keras: Any, tmp_path: Path) -> None:
    for name in ("neg", "pos"):
        (tmp_path / name).mkdir()
        for i in range(2):
            (tmp_path / name / f"{i}.txt").write_text(f"{name} née {i}", encoding="utf-8")
    dataset = keras.utils.text_dataset_from_directory(tmp_path, batch_size=3, shuffle=False, verbose=False)
    assert dataset.class_names == ["neg", "pos"]
    first, labels = next(iter(dataset))
    assert [text.decode() for text in first.numpy()] == ["neg née 0", "neg née 1", "pos née 0"]
    assert labels.numpy().tolist() == [0, 0, 1]
    vectors = keras.layers.TextVectorization()
    vectors.adapt(dataset.map(lambda text, label: text))
    assert "née" in vectors.get_vocabulary()
    assert [x.shape for x, _ in dataset.map(lambda text, label: (vectors(text), label))] == [(3, 3), (1, 3)]


def test_sounds_of_a_folder(keras: Any, tmp_path: Path) -> None:
    for name, size in (("no", 3), ("yes", 5)):
        (tmp_path / name).mkdir()
        sound = df.linspace([0.0], [0.5], size)
        (tmp_path / name / "0.wav").write_bytes(df.audio.encode_wav(sound, 8000).numpy())
    load, options = keras.utils.audio_dataset_from_directory, {"shuffle": False, "verbose": False}
    sounds, labels = next(iter(load(tmp_path, output_sequence_length=4, **options)))
    assert sounds[..., 0].numpy().tolist() == [[0.0, 0.25, 0.5, 0.0], [0.0, 0.125, 0.25, 0.375]]
    assert labels.numpy().tolist() == [0, 1]
    ragged, _ = next(iter(load(tmp_path, ragged=True, **options)))
    assert [len(x) for x in ragged.to_list()] == [3, 5]


@pytest.mark.parametrize("options", [{}, {"sequence_stride": 2, "sampling_rate": 3}, {"batch_size": 4}])
def test_windows_of_a_series(keras: Any, options: dict[str, Any]) -> None:
    series = np.arange(60.0).reshape(30, 2)
    dataset = keras.utils.timeseries_dataset_from_array(series, series[:, 0], 5, **options)
    stride, rate = options.get("sequence_stride", 1), options.get("sampling_rate", 1)
    windows, targets = (np.concatenate(parts) for parts in zip(*dataset, strict=True))
    assert len(windows) == len(range(0, 30 - 4 * rate, stride))
    for i, (window, target) in enumerate(zip(windows, targets, strict=True)):
        np.testing.assert_array_equal(window, series[i * stride :][: 5 * rate : rate])
        assert target == series[i * stride, 0]


@pytest.mark.parametrize("batches", ["batch", "padded_batch"])
def test_a_dataset_is_split_as_it_is_batched(keras: Any, batches: str) -> None:
    whole = df.data.Dataset.range(20)
    for dataset, expected in ((whole, [1] * 14), (getattr(whole, batches)(6), [6, 6, 2])):
        left, right = keras.utils.split_dataset(dataset, left_size=0.7)
        assert [np.size(x) for x in left] == expected
        elements = np.concatenate([np.atleast_1d(x) for part in (left, right) for x in part])
        assert elements.tolist() == [*range(20)]


def test_a_split_that_is_shuffled_loses_nothing(keras: Any) -> None:
    x = np.arange(10)
    left, right = keras.utils.split_dataset((x, -x), left_size=3, shuffle=True, seed=1)
    pairs = [(int(a), int(b)) for part in (left, right) for a, b in part]
    assert len(list(left)) == 3
    assert sorted(pairs) == [(i, -i) for i in range(10)]
    assert pairs != sorted(pairs)
