"""Datasets whose elements are on a device: ``prefetch_to_device`` and ``copy_to_device``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.device_names import CPU
from dualflow.core.tracebacks import entry
from dualflow.data.dataset import Dataset
from dualflow.data.element import Item
from dualflow.data.methods.ordering import prefetch_size
from dualflow.data.stage import AUTOTUNE, StageIterator, StatelessIterator, UnaryStage
from dualflow.eager.device_tensor import to_device
from dualflow.eager.devices import available_device
from dualflow.eager.tensor import wrap

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike


@entry
def prefetch_to_device(device: str, buffer_size: IntLike | None = None) -> Callable[[Dataset], Dataset]:
    """A transformation for ``apply``: a thread copies elements to a device ahead of the loop.

    So a training step doesn't wait for the copy of its batch. It must be the last transformation of a
    dataset. On the CPU it is ``prefetch``.

    Args:
        device: the name of a device, as for ``df.device``.
        buffer_size: how many elements to prefetch; None and AUTOTUNE for 2, 0 for no thread.

    Returns:
        A function from a dataset to a dataset whose tensors are on the device; strings stay on the CPU.

    Raises:
        InvalidArgumentError: ``device`` is not the name of a device, or ``buffer_size`` is negative.

    >>> import dualflow as df
    >>> batches = df.data.Dataset.range(4).batch(2).apply(df.data.experimental.prefetch_to_device("/cpu:0"))
    >>> [batch.numpy().tolist() for batch in batches]
    [[0, 1], [2, 3]]
    """
    size, copy = prefetch_size(AUTOTUNE if buffer_size is None else buffer_size), copy_to_device(device)

    def apply(dataset: Dataset) -> Dataset:
        return copy(dataset).prefetch(size)

    return apply


@entry
def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Callable[[Dataset], Dataset]:
    """A transformation for ``apply`` that copies elements to a device. It must be the last one of a dataset.

    Args:
        target_device: the name of a device, as for ``df.device``.
        source_device: ignored: the elements of a dataset are on the CPU.

    Returns:
        A function from a dataset to a dataset whose tensors are on the device; strings stay on the CPU.

    Raises:
        InvalidArgumentError: ``target_device`` is not the name of a device.

    >>> import dualflow as df
    >>> dataset = df.data.Dataset.range(2).apply(df.data.experimental.copy_to_device("/cpu:0"))
    >>> [int(x) for x in dataset]
    [0, 1]
    """
    name = available_device(target_device)

    def apply(dataset: Dataset) -> Dataset:
        if name in (None, CPU):
            return dataset
        copied: Dataset = dataset.then(DeviceCopyStage(source=dataset.stage))
        return copied

    return apply


@dataclass(frozen=True, eq=False, kw_only=True)
class DeviceCopyStage(UnaryStage):
    """The same elements, as tensors on the GPU."""

    def start(self) -> StageIterator:
        return DeviceCopyIterator(self.source.start())


class DeviceCopyIterator(StatelessIterator):
    """Copies each leaf to the GPU."""

    def next(self, count: int) -> Sequence[Item]:
        return [tuple(map(_copied, item)) for item in self._upstream.next(count)]


def _copied(leaf: Any) -> Any:
    """A leaf on the GPU; a dataset as it is."""
    return to_device(wrap(leaf)) if isinstance(leaf, np.ndarray) else leaf
