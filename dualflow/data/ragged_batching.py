"""Stages that batch elements of different lengths into ragged tensors, and that take the rows of these.

A ragged component of an element is several arrays: its innermost values, then the row splits of its ragged
axes, of which the outermost is the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.dtypes import DType, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.data.batching import BatchingStage, BatchIterator, UnbatchIterator, UnbatchStage, row_count
from dualflow.data.element import DatasetSpec, ElementLayout, Item, layout_of_spec, with_new_axis
from dualflow.data.rows import stack_rows
from dualflow.data.stage import UNKNOWN, StageIterator
from dualflow.function.errors import here
from dualflow.ops.ragged.ragged_spec import RaggedStructure, RaggedTensorSpec


class RaggedArrays(NamedTuple):
    """A ragged tensor as arrays: the innermost values, and the row splits, the outermost first."""

    flat: Array
    splits: tuple[Array, ...]


def holds_ragged(structure: Structure) -> bool:
    """Whether a component of elements of this structure is ragged."""
    return isinstance(structure.kind, RaggedStructure) or any(map(holds_ragged, structure.children))


def reject_ragged(structure: Structure, method: str) -> None:
    """Check that no component is ragged, for a ``method`` that pads or cuts arrays.

    Raises:
        InvalidArgumentError: a component is ragged.
    """
    if holds_ragged(structure):
        raise InvalidArgumentError(
            f"`{method}()` does not support ragged components. Make them tensors before, with "
            f"map(lambda x: x.to_tensor()), or use batch, which takes rows of any lengths.{here()}"
        )


def components(layout: ElementLayout) -> tuple[list[Any], Structure]:
    """The spec of each component, one for a ragged tensor, and the structure of the components."""
    return flatten(layout.element_spec, is_leaf=_is_spec)


def _number_of_arrays(spec: Any) -> int:
    """The number of arrays that hold a component: values and row splits if it is ragged, else one."""
    return 1 + spec.ragged_rank if isinstance(spec, RaggedTensorSpec) else 1


def _is_spec(x: Any) -> bool:
    return isinstance(x, TensorSpec | RaggedTensorSpec | DatasetSpec)


@dataclass(frozen=True, eq=False, kw_only=True)
class RaggedBatchStage(BatchingStage):
    """Batches of consecutive elements, whose components may have different lengths.

    Attributes:
        splits_dtype: the dtype of row splits of components that are tensors.
        of_tensors: whether components of unknown sizes that are tensors become ragged.
    """

    splits_dtype: DType = int64
    of_tensors: bool = True

    @property
    def layout(self) -> ElementLayout:
        specs, structure = components(self.source.layout)
        return layout_of_spec(unflatten(structure, [self.batched_spec(spec) for spec in specs]))

    def start(self) -> StageIterator:
        return RaggedBatchIterator(self, self.source.start())

    def batched_spec(self, spec: Any) -> Any:
        """The spec of a batch of a component."""
        size = self.static_size
        if isinstance(spec, RaggedTensorSpec):
            shape = [size, *spec.shape]
            return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank + 1, spec.row_splits_dtype)
        ragged = self.ragged_axes(spec)
        if not ragged:
            return with_new_axis(spec, size)
        return RaggedTensorSpec([size, *spec.shape], spec.dtype, ragged, self.splits_dtype)

    def ragged_axes(self, spec: TensorSpec) -> int:
        """The number of ragged axes of a batch of tensors: up to the last axis of unknown size."""
        if not self.of_tensors:
            return 0
        if spec.shape is UNKNOWN_RANK:
            raise InvalidArgumentError(
                "ragged_batch takes tensors of a known number of axes; give them a shape with "
                f"map.{self.where}"
            )
        return max([axis + 1 for axis, size in enumerate(spec.shape) if size is None], default=0)


class RaggedBatchIterator(BatchIterator):
    """Iterates over batches with ragged components."""

    _stage: Any

    def __init__(self, stage: Any, upstream: StageIterator) -> None:
        super().__init__(stage, upstream)
        self._specs = components(stage.source.layout)[0]

    def batch(self, items: Sequence[Item]) -> Item:
        columns = list(zip(*items, strict=True))
        leaves: list[Any] = []
        at = 0
        for spec in self._specs:
            count = _number_of_arrays(spec)
            arrays = columns[at : at + count]
            at += count
            leaves += self._component(spec, [tuple(row) for row in zip(*arrays, strict=True)])
        return tuple(leaves)

    def _component(self, spec: Any, rows: list[Item]) -> list[Any]:
        stage = self._stage
        if isinstance(spec, RaggedTensorSpec):
            return batched([RaggedArrays(row[0], row[:0:-1]) for row in rows], spec.row_splits_dtype)
        ragged = stage.ragged_axes(spec)
        if not ragged:
            return list(stack_rows(rows, stage.where))
        return batched([tensor_parts(row[0], ragged - 1) for row in rows], stage.splits_dtype)


def tensor_parts(array: Array, partitions: int) -> RaggedArrays:
    """A tensor as a ragged one, with rows of equal lengths along its first axes."""
    shape = array.shape
    splits = [np.arange(prod(shape[:k]) + 1) * shape[k] for k in range(1, partitions + 1)]
    return RaggedArrays(array.reshape(prod(shape[: partitions + 1]), *shape[partitions + 1 :]), tuple(splits))


def batched(elements: Sequence[RaggedArrays], splits_dtype: DType) -> list[Array]:
    """The arrays of the ragged tensor whose rows are the elements."""
    lengths = [len(x.splits[0]) - 1 if x.splits else len(x.flat) for x in elements]
    levels = [np.cumsum([0, *lengths])]
    for splits in zip(*[x.splits for x in elements], strict=True):
        ends = np.cumsum([0, *[part[-1] for part in splits]])
        levels.append(
            np.concatenate([[0], *[part[1:] + end for part, end in zip(splits, ends, strict=False)]])
        )
    flat = np.concatenate([x.flat for x in elements])
    return [flat, *[splits.astype(splits_dtype.dtype) for splits in reversed(levels)]]


# Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class RaggedUnbatchStage(UnbatchStage):
    """A stage whose elements are the rows of its source's elements, some of whose components are ragged."""

    @property
    def layout(self) -> ElementLayout:
        specs, structure = components(self.source.layout)
        return layout_of_spec(unflatten(structure, [_row_spec(spec) for spec in specs]))

    @property
    def cardinality(self) -> int:
        sizes = {spec.shape[0] for spec in components(self.source.layout)[0] if spec.shape} - {None}
        count = self.source.cardinality
        return count * sizes.pop() if sizes and count >= 0 else (UNKNOWN if count != 0 else 0)

    def start(self) -> StageIterator:
        return RaggedUnbatchIterator(self, self.source.start())


class RaggedUnbatchIterator(UnbatchIterator):
    """Iterates over the rows of elements with ragged components."""

    def __init__(self, stage: UnbatchStage, upstream: StageIterator) -> None:
        super().__init__(stage, upstream)
        self._specs = components(stage.source.layout)[0]

    def count(self, item: Item) -> int:
        firsts = tuple([x.splits[0][:-1] if x.splits else x.flat for x in self._components(item)])
        return row_count(firsts, "unbatch", self._stage.where)

    def row(self, item: Item, index: int) -> Item:
        return tuple([array for parts in self._components(item) for array in _row(parts, index)])

    def _components(self, item: Item) -> Iterator[RaggedArrays]:
        at = 0
        for spec in self._specs:
            count = _number_of_arrays(spec)
            yield RaggedArrays(item[at], item[at + count - 1 : at : -1])
            at += count


def _row(x: RaggedArrays, index: int) -> list[Array]:
    """The arrays of a row: of a tensor, or of a ragged tensor with one ragged axis less."""
    if not x.splits:
        return [x.flat[index, ...]]
    start, end = x.splits[0][index : index + 2].tolist()
    inner = []
    for splits in x.splits[1:]:
        ends = splits[start : end + 1]
        inner.append(ends - ends[0])
        start, end = int(ends[0]), int(ends[-1])
    return [x.flat[start:end], *reversed(inner)]


def _row_spec(spec: Any) -> Any:
    shape = Shape(spec.shape[1:])
    if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank > 1:
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank - 1, spec.row_splits_dtype)
    return TensorSpec(shape, spec.dtype)
