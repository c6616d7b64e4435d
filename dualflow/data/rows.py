"""Elements with random access by index: a batch is one gather."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError
from dualflow.data.element import Item, columns
from dualflow.data.stage import IndexedRows, StageIterator, StatelessIterator


@dataclass(frozen=True, slots=True, eq=False)
class ArrayRows:
    """The rows of arrays of equal length."""

    arrays: tuple[Array, ...]

    def row(self, index: int) -> Item:
        return tuple([a[index, ...] for a in self.arrays])

    def gather(self, indices: Sequence[int]) -> list[Array]:
        if isinstance(indices, range) and indices.step == 1:
            rows = slice(indices.start, indices.stop)
            return [a[rows] for a in self.arrays]
        index_array = np.array(indices, np.intp)
        return [a.take(index_array, 0) for a in self.arrays]


@dataclass(frozen=True, slots=True, eq=False)
class ProgressionRows:
    """The numbers of a range, computed when they are read."""

    numbers: range
    dtype: Any

    def row(self, index: int) -> Item:
        return (np.array(self.numbers[index], self.dtype),)

    def gather(self, indices: Sequence[int]) -> list[Array]:
        index_array = np.array(indices, np.int64)
        return [(self.numbers.start + self.numbers.step * index_array).astype(self.dtype, copy=False)]


@dataclass(frozen=True, slots=True, eq=False)
class SequenceRows:
    """The elements of an object with integer indices."""

    sequence: Any
    read: Any

    def row(self, index: int) -> Item:
        item: Item = self.read(self.sequence[index], index)
        return item

    def gather(self, indices: Sequence[int]) -> list[Array]:
        return stack_rows([self.row(i) for i in indices])


def stack_rows(items: Sequence[Item], where: str = "") -> list[Array]:
    """The leaves of several elements, stacked along a new first axis.

    Raises:
        InvalidArgumentError: the shapes of a leaf differ. The message ends with ``where``.
    """
    leaves = columns(items)
    try:
        return list(map(np.stack, leaves))
    except ValueError:
        for component, column in enumerate(leaves):
            first = column[0].shape
            for number, leaf in enumerate(column):
                if leaf.shape != first:
                    raise InvalidArgumentError(
                        f"Cannot batch tensors with different shapes in component {component}. First element "
                        f"had shape {list(first)} and element {number} had shape {list(leaf.shape)}. Use "
                        f"padded_batch, or give them the same shape with map.{where}"
                    ) from None
        raise


class RowIterator(StatelessIterator):
    """Iterates over rows by an iterator of their indices."""

    def __init__(self, rows: IndexedRows, numbers: StageIterator) -> None:
        super().__init__(numbers)
        self._row = rows.row

    def next(self, count: int) -> Sequence[Item]:
        numbers = self._upstream.next(count)
        if len(numbers) == 1:
            return (self._row(numbers[0]),)
        return [self._row(i) for i in numbers]
