"""Stages that make one element of several, by stacking their leaves, and several of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.data.element import ElementLayout, Item, leading, stacked, trailing
from dualflow.data.rows import stack_rows
from dualflow.data.stage import UNKNOWN, Cursor, IndexedRows, OneToOne, OverOne, State
from dualflow.data.states import number, parts, wrong_state


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchStage(OverOne):
    """So many elements in a row as one, whose leaves have one more axis.

    Attributes:
        size: how many.
        whole: whether what is left at the end is dropped.
    """

    size: int
    whole: bool

    @property
    def layout(self) -> ElementLayout:
        known = self.source.layout
        size = self.size if self.whole else None
        return ElementLayout(known.structure, tuple([leading(spec, size) for spec in known.specs]))

    @property
    def cardinality(self) -> int:
        return batches(self.source.cardinality, self.size, self.whole)

    def start(self) -> Cursor:
        found = self.source.indexed()
        if found is None:
            return BatchCursor(self, self.source.start())
        return GatherCursor(found[0], found[1].start(), self.size, self.whole)


def batches(count: int, size: int, whole: bool) -> int:
    """How many batches ``count`` elements make."""
    return count if count < 0 else (count if whole else count + size - 1) // size


class GatherCursor(OneToOne):
    """Batches of rows, each taken at once."""

    def __init__(self, rows: IndexedRows, numbers: Cursor, size: int, whole: bool) -> None:
        super().__init__(numbers)
        self._gather = rows.gather
        self._size = size
        self._least = size if whole else 1

    def pull(self, count: int) -> Sequence[Item]:
        batches: list[Item] = []
        while len(batches) < count:
            indices = self._upstream.pull(self._size)
            if len(indices) < self._least:
                break
            batches.append(tuple(self._gather(indices)))
        return batches


class BatchCursor(OneToOne):
    """Batches of the elements of a run."""

    def __init__(self, stage: BatchStage, upstream: Cursor) -> None:
        super().__init__(upstream)
        self._stage = stage
        self._least = stage.size if stage.whole else 1

    def pull(self, count: int) -> Sequence[Item]:
        found: list[Item] = []
        for _ in range(count):
            items = self._upstream.pull(self._stage.size)
            if len(items) < self._least:
                break
            found.append(tuple(stack_rows(items, self._stage.where)))
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class PaddedBatchStage(OverOne):
    """Batches whose elements are filled up to one shape.

    Attributes:
        size, whole: as of :class:`BatchStage`.
        shapes: of the elements' leaves; None for the largest size in a batch.
        fills: what stands in new places, arrays without axes.
    """

    size: int
    whole: bool
    shapes: tuple[Shape, ...]
    fills: tuple[Array, ...]

    @property
    def layout(self) -> ElementLayout:
        known = self.source.layout
        size = self.size if self.whole else None
        specs = [
            type(s).of(Shape([size, *shape]), s.dtype)
            for s, shape in zip(known.specs, self.shapes, strict=True)
        ]
        return ElementLayout(known.structure, tuple(specs))

    @property
    def cardinality(self) -> int:
        return batches(self.source.cardinality, self.size, self.whole)

    def start(self) -> Cursor:
        return PaddedBatchCursor(self, self.source.start())


class PaddedBatchCursor(OneToOne):
    """Padded batches of the elements of a run."""

    def __init__(self, stage: PaddedBatchStage, upstream: Cursor) -> None:
        super().__init__(upstream)
        self._stage = stage
        self._least = stage.size if stage.whole else 1

    def pull(self, count: int) -> Sequence[Item]:
        stage, found = self._stage, []
        for _ in range(count):
            items = self._upstream.pull(stage.size)
            if len(items) < self._least:
                break
            columns = enumerate(zip(stacked(items), stage.shapes, stage.fills, strict=True))
            found.append(tuple([self._padded(i, *row) for i, row in columns]))
        return found

    def _padded(self, place: int, column: list[Array], shape: Shape, fill: Array) -> Array:
        if any(x.ndim != len(shape) for x in column):
            odd = next(x for x in column if x.ndim != len(shape))
            raise InvalidArgumentError(
                f"padded_batch fills component {place} up to the shape {shape}, but an element has shape "
                f"{odd.shape}; give padded_shapes of its number of axes.{self._stage.where}"
            )
        largest = [max(sizes) for sizes in zip(*[x.shape for x in column], strict=True)]
        target = [most if size is None else size for most, size in zip(largest, shape, strict=True)]
        if any(most > size for most, size in zip(largest, target, strict=True)):
            raise InvalidArgumentError(
                f"Attempted to pad to a smaller size than the input element: padded_shapes gives component "
                f"{place} the shape {shape}, and an element is larger, up to {Shape(largest)}. Leave the "
                "size "
                f"open with None, or cut elements with map.{self._stage.where}"
            )
        made = np.full((len(column), *target), fill, column[0].dtype)
        for row, x in enumerate(column):
            corner: tuple[Any, ...] = (row, *map(slice, x.shape))
            made[corner] = x if x.ndim else x[()]  # of strings, the string itself
        return made


@dataclass(frozen=True, eq=False, kw_only=True)
class UnbatchStage(OverOne):
    """The rows of each element as elements."""

    @property
    def layout(self) -> ElementLayout:
        known = self.source.layout
        return ElementLayout(known.structure, tuple([trailing(spec) for spec in known.specs]))

    @property
    def cardinality(self) -> int:
        sizes = {s.shape[0] for s in self.source.layout.specs if s.shape is not UNKNOWN_RANK} - {None}
        known = self.source.cardinality
        return known * sizes.pop() if sizes and known >= 0 else (UNKNOWN if known != 0 else 0)

    def start(self) -> Cursor:
        return UnbatchCursor(self, self.source.start())


class UnbatchCursor(Cursor):
    """The rows of a run's elements."""

    def __init__(self, stage: UnbatchStage, upstream: Cursor) -> None:
        self._stage = stage
        self._upstream = upstream
        self.upstreams = (upstream,)
        self._before: State = None
        self._item: Item = ()
        self._at = 0
        self._length = 0

    def pull(self, count: int) -> Sequence[Item]:
        found: list[Item] = []
        while len(found) < count:
            if self._at == self._length:
                self._before = self._upstream.get_state()
                items = self._upstream.pull(1)
                if not items:
                    break
                self._open(items[0])
            end = min(self._length, self._at + count - len(found))
            found += [tuple([x[i, ...] for x in self._item]) for i in range(self._at, end)]
            self._at = end
        return found

    def _open(self, item: Item) -> None:
        lengths = {x.shape[0] if x.ndim else -1 for x in item}
        if len(lengths) != 1 or -1 in lengths:
            raise InvalidArgumentError(
                "unbatch takes elements whose components have one first size in common, not the shapes "
                f"{', '.join(str(x.shape) for x in item)}.{self._stage.where}"
            )
        self._item, self._at, self._length = item, 0, lengths.pop()

    def get_state(self) -> State:
        if self._at == self._length:
            return [self._upstream.get_state(), 0]
        return [self._before, self._at]

    def set_state(self, state: State) -> None:
        self._before, at = parts(state, 2)
        self._upstream.set_state(self._before)
        self._item, self._at, self._length = (), 0, 0
        if number(at):
            items = self._upstream.pull(1)
            if not len(items):
                raise wrong_state(self._before, "a place before the source's end")
            self._open(items[0])
            self._at = number(at, self._length)
