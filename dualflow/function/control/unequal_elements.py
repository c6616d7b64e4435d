"""Elements of unequal shapes: those of a TensorArray without ``infer_shape``, as loops carry them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Dim, Shape
from dualflow.function.control.array_ops import row_count, with_dynamic_size, write_row, zero_rows
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, greater
from dualflow.ops.creation import constant
from dualflow.ops.joining import concat, stack
from dualflow.ops.positions import range as count_up
from dualflow.ops.reduction import reduce_all, reduce_max
from dualflow.ops.repetition import repeat
from dualflow.ops.scans import cumsum
from dualflow.ops.scattering import tensor_scatter_nd_update
from dualflow.ops.shapes import size
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import sizes_of

_UNWRITTEN: Final = "an element of a TensorArray without infer_shape has no shape before it is written."
_UNEQUAL: Final = (
    "elements of a TensorArray that are stacked have one shape, and those that are concatenated differ along "
    "their first axis alone; pad them."
)


class UnequalElements(NamedTuple):
    """Tensors of one rank and of any sizes, whose numbers are in one vector.

    Attributes:
        values: the numbers of all elements, in the order of the writes.
        places: for each element the index of its first number in ``values``, plus 1; 0 if it is unwritten.
        sizes: a matrix with the sizes of each element.
    """

    values: Any
    places: Any
    sizes: Any

    def number(self) -> Any:
        """The number of elements, a scalar tensor."""
        return row_count(self.places)

    def read(self, index: Any, shape: Shape) -> Any:
        """The element at ``index``, whose static sizes are those of ``shape``."""
        place = gather(self.places, index)
        start = required(place, greater(place, 0), _UNWRITTEN) - 1
        sizes = _sizes(gather(self.sizes, index), shape)
        return reshape(gather(self.values, start + count_up(_product(sizes))), sizes)

    def write(self, index: Any, value: Any, *, grows: bool) -> UnequalElements:
        """The elements with ``value`` at ``index``; if the array ``grows``, elements are added before it."""
        place, sizes = size(self.values) + 1, sizes_of(value, int32)
        values = concat([self.values, reshape(value, [-1])], 0)
        if grows or self.places.shape[0] is None:
            places = write_row(self.places, index, place, grows=grows)
            return UnequalElements(values, places, write_row(self.sizes, index, sizes, grows=grows))
        at = [[index]]
        places = tensor_scatter_nd_update(self.places, at, stack([place]))
        return UnequalElements(values, places, tensor_scatter_nd_update(self.sizes, at, stack([sizes])))

    def at(self, indices: Any) -> UnequalElements:
        """The elements at ``indices``."""
        return UnequalElements(self.values, gather(self.places, indices), gather(self.sizes, indices))

    def stack(self, shape: Shape) -> Any:
        """The elements, which have one shape, stacked."""
        sizes = [self._common(axis) if d is None else d for axis, d in enumerate(shape)]
        return reshape(self._in_order(), [self.number(), *sizes])

    def concat(self, shape: Shape) -> Any:
        """The elements, whose shapes differ along their first axis alone, joined along it."""
        sizes = [self._common(axis) if d is None else d for axis, d in enumerate(shape) if axis]
        return reshape(self._in_order(), [reduce_sum(self.sizes[:, 0]), *sizes])

    def with_dynamic_count(self) -> UnequalElements:
        """The elements, whose number iterations of a loop may change."""
        return UnequalElements(self.values, *map(with_dynamic_size, (self.places, self.sizes)))

    def _common(self, axis: int) -> Any:
        """The size along an axis, which is that of all elements; 0 if there is none."""
        sizes = self.sizes[:, axis]
        largest = maximum(reduce_max(sizes), 0)
        return required(largest, reduce_all(equal(sizes, largest)), _UNEQUAL)

    def _in_order(self) -> Any:
        """The numbers of all elements in the order of the elements."""
        counts = _product([self.sizes[:, axis] for axis in range(self.sizes.shape[1])])
        starts = required(self.places, reduce_all(greater(self.places, 0)), _UNWRITTEN) - 1
        offsets = repeat(starts - cumsum(counts, exclusive=True), counts, axis=0)
        return gather(self.values, offsets + count_up(row_count(offsets)))


def unwritten(count: Any, rank: int, dtype: DType) -> UnequalElements:
    """``count`` elements, an int or a scalar tensor, of ``rank`` axes, to which nothing was written."""
    values = with_dynamic_size(constant(np.zeros(0, dtype.dtype)))
    if isinstance(count, int):
        places, sizes = np.zeros(count, np.int32), np.zeros((count, rank), np.int32)
        return UnequalElements(values, constant(places), constant(sizes))
    return UnequalElements(
        values, zero_rows(count, Shape(()), int32), zero_rows(count, Shape((rank,)), int32)
    )


def of_tensors(tensors: Sequence[Any], rank: int, dtype: DType) -> UnequalElements:
    """The elements ``tensors``, of which None is unwritten."""
    elements = unwritten(len(tensors), rank, dtype)
    for i, tensor in enumerate(tensors):
        if tensor is not None:
            elements = elements.write(i, tensor, grows=False)
    return elements


def of_rows(rows: Any) -> UnequalElements:
    """The rows of a tensor as elements."""
    sizes = sizes_of(rows, int32)
    indices = count_up(row_count(rows))
    counts = _product([sizes[axis] for axis in range(1, len(rows.shape))])
    return UnequalElements(
        with_dynamic_size(reshape(rows, [-1])),
        indices * counts + 1,
        repeat(sizes[None, 1:], row_count(rows), axis=0),
    )


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """The sizes that all ``shapes`` have, except the first, which may differ in other elements.

    Raises:
        InvalidArgumentError: their ranks differ.
    """
    if len({len(shape) for shape in shapes}) > 1:
        texts = " and ".join(dict.fromkeys(map(str, shapes)))
        raise InvalidArgumentError(
            f"Elements of shapes {texts} are written to a TensorArray; its elements have one rank."
        )
    dims: list[Dim] = [d[0] if len(set(d)) == 1 else None for d in zip(*shapes, strict=True)]
    return Shape([None, *dims[1:]])


def _sizes(sizes: Any, shape: Shape) -> list[Any]:
    """The elements of the vector ``sizes``, as ints where ``shape`` has them."""
    return [sizes[axis] if d is None else d for axis, d in enumerate(shape)]


def _product(sizes: Sequence[Any]) -> Any:
    product = constant(1, int32)
    for x in sizes:
        product = product * x
    return product
