"""Stages that stack several elements into a batch, and that split batches into their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.data.check_state import number, parts, wrong_state
from dualflow.data.element import ElementLayout, Item, columns, with_new_axis, without_first_axis
from dualflow.data.rows import stack_rows
from dualflow.data.stage import UNKNOWN, StageIterator, State, StatelessIterator, UnaryStage


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchingStage(UnaryStage):
    """Consecutive elements combined to batches of one size.

    Attributes:
        size: the number of elements in a batch.
        drop_remainder: whether a smaller last batch is dropped.
    """

    size: int
    drop_remainder: bool

    @property
    def cardinality(self) -> int:
        count, rounding = self.source.cardinality, 0 if self.drop_remainder else self.size - 1
        return count if count < 0 else (count + rounding) // self.size

    @property
    def static_size(self) -> int | None:
        """The size of all batches; None if the last one may be smaller."""
        return self.size if self.drop_remainder else None


class BatchStage(BatchingStage):
    """Batches: consecutive elements stacked along a new first axis."""

    @property
    def layout(self) -> ElementLayout:
        source, size = self.source.layout, self.static_size
        return ElementLayout(
            source.structure.batched(size), tuple([with_new_axis(spec, size) for spec in source.specs])
        )

    def start(self) -> StageIterator:
        indexed = self.source.indexed()
        if indexed is None:
            return BatchIterator(self, self.source.start())
        return GatherIterator(indexed[0].gather, indexed[1].start(), self.size, self.drop_remainder)


class GatherIterator(StatelessIterator):
    """Iterates over batches of rows; each batch is one gather."""

    def __init__(
        self,
        gather: Callable[[Sequence[int]], list[Array]],
        numbers: StageIterator,
        size: int,
        drop_remainder: bool,
    ) -> None:
        super().__init__(numbers)
        self._gather = gather
        self._size = size
        self._min_size = size if drop_remainder else 1

    def next(self, count: int) -> Sequence[Item]:
        batches: list[Item] = []
        while len(batches) < count:
            indices = self._upstream.next(self._size)
            if len(indices) < self._min_size:
                break
            batches.append(tuple(self._gather(indices)))
        return batches


class BatchIterator(StatelessIterator):
    """Iterates over batches of an iterator's elements."""

    def __init__(self, stage: BatchingStage, upstream: StageIterator) -> None:
        super().__init__(upstream)
        self._stage = stage
        self._min_size = stage.size if stage.drop_remainder else 1

    def next(self, count: int) -> Sequence[Item]:
        batches: list[Item] = []
        for _ in range(count):
            items = self._upstream.next(self._stage.size)
            if len(items) < self._min_size:
                break
            batches.append(self.batch(items))
        return batches

    def batch(self, items: Sequence[Item]) -> Item:
        """The batch of some elements."""
        return tuple(stack_rows(items, self._stage.where))


@dataclass(frozen=True, eq=False, kw_only=True)
class PaddedBatchStage(BatchingStage):
    """Batches whose elements are padded to one shape.

    Attributes:
        shapes: the padded shape of each leaf; None for the largest size in a batch.
        fills: the padding value of each leaf, scalar arrays.
    """

    shapes: tuple[Shape, ...]
    fills: tuple[Array, ...]

    @property
    def layout(self) -> ElementLayout:
        source, size = self.source.layout, self.static_size
        specs = [
            type(s).of(Shape([size, *shape]), s.dtype)
            for s, shape in zip(source.specs, self.shapes, strict=True)
        ]
        return ElementLayout(source.structure.batched(size), tuple(specs))

    def start(self) -> StageIterator:
        return PaddedBatchIterator(self, self.source.start())


class PaddedBatchIterator(BatchIterator):
    """Iterates over padded batches of an iterator's elements."""

    _stage: PaddedBatchStage

    def batch(self, items: Sequence[Item]) -> Item:
        components = zip(columns(items), self._stage.shapes, self._stage.fills, strict=True)
        return tuple([self._padded(i, *component) for i, component in enumerate(components)])

    def _padded(self, component: int, column: list[Array], shape: Shape, fill: Array) -> Array:
        if any(x.ndim != len(shape) for x in column):
            odd = next(x for x in column if x.ndim != len(shape))
            raise InvalidArgumentError(
                f"padded_batch pads component {component} to the shape {shape}, but an element has shape "
                f"{odd.shape}; give padded_shapes with its number of axes.{self._stage.where}"
            )
        largest = [max(sizes) for sizes in zip(*[x.shape for x in column], strict=True)]
        target = [most if size is None else size for most, size in zip(largest, shape, strict=True)]
        if any(most > size for most, size in zip(largest, target, strict=True)):
            raise InvalidArgumentError(
                "Attempted to pad to a smaller size than the input element: padded_shapes gives component "
                f"{component} the shape {shape}, and an element is larger, up to {Shape(largest)}. Give the "
                f"size as None, or cut elements with map.{self._stage.where}"
            )
        padded = np.full((len(column), *target), fill, column[0].dtype)
        for row, x in enumerate(column):
            corner: tuple[Any, ...] = (row, *map(slice, x.shape))
            padded[corner] = x if x.ndim else x[()]  # of strings, the string itself
        return padded


def row_count(item: Item, method: str, where: str) -> int:
    """The number of rows of an element: the first size of all its components.

    Raises:
        InvalidArgumentError: a component is a scalar, or first sizes differ.
    """
    lengths = {x.shape[0] if x.ndim else -1 for x in item}
    if len(lengths) != 1 or -1 in lengths:
        raise InvalidArgumentError(
            f"{method} requires elements whose components have the same first size, not the shapes "
            f"{', '.join(str(x.shape) for x in item)}.{where}"
        )
    return lengths.pop()


@dataclass(frozen=True, eq=False, kw_only=True)
class UnbatchStage(UnaryStage):
    """A stage whose elements are the rows of its source's elements."""

    @property
    def layout(self) -> ElementLayout:
        source = self.source.layout
        specs = tuple([without_first_axis(spec) for spec in source.specs])
        return ElementLayout(source.structure.unbatched(), specs)

    @property
    def cardinality(self) -> int:
        sizes = {s.shape[0] for s in self.source.layout.specs if s.shape is not UNKNOWN_RANK} - {None}
        count = self.source.cardinality
        return count * sizes.pop() if sizes and count >= 0 else (UNKNOWN if count != 0 else 0)

    def start(self) -> StageIterator:
        return UnbatchIterator(self, self.source.start())


class UnbatchIterator(StageIterator):
    """Iterates over the rows of an iterator's elements."""

    def __init__(self, stage: UnbatchStage, upstream: StageIterator) -> None:
        self._stage = stage
        self._upstream = upstream
        self.upstreams = (upstream,)
        self._before: State = None
        self._item: Item = ()
        self._at = 0
        self._length = 0

    def next(self, count: int) -> Sequence[Item]:
        rows: list[Item] = []
        while len(rows) < count:
            if self._at == self._length:
                self._before = self._upstream.get_state()
                items = self._upstream.next(1)
                if not items:
                    break
                self._open(items[0])
            end = min(self._length, self._at + count - len(rows))
            rows += [self.row(self._item, i) for i in range(self._at, end)]
            self._at = end
        return rows

    def _open(self, item: Item) -> None:
        length = self.count(item)
        self._item, self._at, self._length = item, 0, length

    def count(self, item: Item) -> int:
        """The number of rows of an element."""
        return row_count(item, "unbatch", self._stage.where)

    def row(self, item: Item, index: int) -> Item:
        """A row of an element."""
        return tuple([x[index, ...] for x in item])

    def get_state(self) -> State:
        if self._at == self._length:
            return [self._upstream.get_state(), 0]
        return [self._before, self._at]

    def set_state(self, state: State) -> None:
        self._before, at = parts(state, 2)
        self._upstream.set_state(self._before)
        self._item, self._at, self._length = (), 0, 0
        if number(at):
            items = self._upstream.next(1)
            if not len(items):
                raise wrong_state(self._before, "a place before the source's end")
            self._open(items[0])
            self._at = number(at, self._length)
