"""What ``fit`` is given, in batches."""

from __future__ import annotations

from typing import Any

from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.epoch_iterator import EpochIterator


def batches_of(x: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
    """An iterator over the epochs of data: arrays, a generator, or any dataset that Keras takes."""
    return EpochIterator(x=x, y=y, sample_weight=sample_weight, **options)


def without_validation(data: tuple[Any, Any, Any], validation_data: Any, split: float) -> tuple[Any, Any]:
    """The data to train on, and that to validate on: what is given, or else a last part of ``data``."""
    if validation_data is not None or not split:
        return data, validation_data
    train, kept = array_slicing.train_validation_split(data, validation_split=split)
    return train, kept
