"""Batches of the data of ``fit``, ``evaluate`` and ``predict``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keras.src import tree
from keras.src.trainers.data_adapters import array_slicing, data_adapter, data_adapter_utils
from keras.src.trainers.epoch_iterator import EpochIterator

import dualflow as df
from dualflow.distribute.datasets import shares_batches
from keras_dualflow.src.training.parts import PartAdapter


def epoch_iterator(strategy: Any, x: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
    """An iterator over the epochs of data: arrays, a generator, a ``df.data.Dataset`` or another dataset.

    With several replicas its batches are :class:`BatchPart` s.

    Raises:
        ValueError: ``x`` is a dataset, and there are targets or weights.
    """
    elements_are_global_batches = True
    if isinstance(x, df.data.Dataset):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "When `x` is a dataset, its elements are (x, y) or (x, y, sample_weight); `y` and "
                "`sample_weight` must be None."
            )
        workers = strategy.num_replicas_in_sync
        elements_are_global_batches = workers == 1 or shares_batches(x, workers)
        x = x if elements_are_global_batches else strategy.experimental_distribute_dataset(x)
        x = DatasetAdapter(x, options.pop("class_weight", None))
        options.pop("batch_size", None)
    batches = EpochIterator(x=x, y=y, sample_weight=sample_weight, **options)
    if strategy.num_replicas_in_sync > 1:
        batches.data_adapter = PartAdapter(batches.data_adapter, strategy, elements_are_global_batches)
    return batches


def split_validation(data: tuple[Any, Any, Any], validation_data: Any, split: float) -> tuple[Any, Any]:
    """Training and validation data: ``validation_data``, or else the fraction ``split`` of ``data``."""
    if validation_data is not None or not split:
        return data, validation_data
    train, validation = array_slicing.train_validation_split(data, validation_split=split)
    return train, validation


class DatasetAdapter(data_adapter.DataAdapter):  # type: ignore[misc]  # Keras has no types
    """The batches of a ``df.data.Dataset``, which are its elements.

    Args:
        dataset: a dataset with elements ``x``, ``(x, y)`` or ``(x, y, sample_weight)``.
        class_weight: the weight of each class, which becomes the weight of its samples.
    """

    def __init__(self, dataset: Any, class_weight: dict[int, float] | None) -> None:
        self._dataset, self._class_weight = dataset, class_weight

    def get_numpy_iterator(self) -> Iterator[Any]:
        """The batches, with tensors as leaves; Keras only passes them to the model."""
        if self._class_weight is None:
            return iter(self._dataset)
        return map(self._weighted, self._dataset)

    def _weighted(self, batch: Any) -> tuple[Any, Any, Any]:
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(batch)
        if sample_weight is not None:
            raise ValueError("`class_weight` can't be used with a dataset that has sample weights.")
        if tree.is_nested(y):
            raise ValueError("`class_weight` is only supported for Models with a single output.")
        return x, y, data_adapter_utils.class_weight_to_sample_weights(y, self._class_weight)

    @property
    def num_batches(self) -> int | None:
        """The number of batches; None if it is unknown before they are read."""
        count = int(self._dataset.cardinality())
        return None if count < 0 else count

    @property
    def batch_size(self) -> int | None:
        """The first size of a batch; None if it is dynamic."""
        size: int | None = tree.flatten(self._dataset.element_spec)[0].shape[0]
        return size
