"""The values of sparse tensors, slices and ragged tensors that sessions take and return: NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from dualflow.core.errors import DTypeError
from dualflow.core.tree import Structure
from dualflow.ops.ragged.ragged_spec import RaggedStructure
from dualflow.ops.sparse.indexed_slices import SlicesStructure
from dualflow.ops.sparse.sparse_tensor import SparseStructure, SparseTensor


class SparseTensorValue(NamedTuple):
    """A sparse tensor of NumPy arrays, which ``SparseTensor.from_value`` converts.

    Attributes:
        indices: integers, a row for each element.
        values: the elements.
        dense_shape: the sizes.

    >>> from dualflow.compat import v1
    >>> value = v1.SparseTensorValue([[0, 1]], [2.0], [1, 3])
    >>> v1.sparse_tensor_to_dense(v1.SparseTensor.from_value(value)).numpy().tolist()
    [[0.0, 2.0, 0.0]]
    """

    indices: Any
    values: Any
    dense_shape: Any


class IndexedSlicesValue(NamedTuple):
    """Slices of a tensor as NumPy arrays, as a session returns ``IndexedSlices``.

    Attributes:
        values: the slices.
        indices: the index of each along the first axis.
        dense_shape: the shape of the whole tensor; None if it is unknown.
    """

    values: Any
    indices: Any
    dense_shape: Any


class RaggedTensorValue(NamedTuple):
    """A ragged tensor of NumPy arrays, as a session returns it.

    Attributes:
        values: the rows one after the other: an array, or a RaggedTensorValue.
        row_splits: the index in ``values`` at which each row begins, and at the end their number.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     session.run(v1.ragged.range([2, 1])).to_list()
    [[0, 1], [0]]
    """

    values: Any
    row_splits: Any

    def to_list(self) -> list[Any]:
        """The rows as nested lists."""
        values = self.values.to_list() if isinstance(self.values, RaggedTensorValue) else self.values.tolist()
        return [values[i:j] for i, j in zip(self.row_splits[:-1], self.row_splits[1:], strict=True)]


def with_composite_values(structure: Structure) -> Structure:
    """The structure of the results of a run: values of composites in place of the composites."""
    value = _VALUES.get(type(structure.kind))
    kind = structure.kind if value is None else value(structure.kind)
    return Structure(kind, structure.keys, tuple(map(with_composite_values, structure.children)))


def _sparse_value(structure: SparseStructure) -> Callable[..., SparseTensorValue]:
    if not structure.shape.is_static:
        return SparseTensorValue
    return partial(SparseTensorValue, dense_shape=np.array(structure.shape, np.int64))


def _slices_value(structure: SlicesStructure) -> Callable[..., IndexedSlicesValue]:
    shape = structure.shape
    if shape is not None and not shape.is_static:
        return IndexedSlicesValue
    return partial(IndexedSlicesValue, dense_shape=None if shape is None else np.array(shape))


_VALUES: Final[dict[type, Callable[[Any], Any]]] = {
    SparseStructure: _sparse_value,
    SlicesStructure: _slices_value,
    RaggedStructure: lambda structure: RaggedTensorValue,
}
"""Returns the constructor of the values of a kind of composite."""


def key_parts(key: Any) -> list[Any]:
    """The tensors that are fed for a key of a feed: the parts of a sparse tensor, or the key itself."""
    if not isinstance(key, SparseTensor):
        return [key]
    parts = [key.indices, key.values]
    return parts if key.shape.is_static else [*parts, key.dense_shape]


def value_parts(key: Any, value: Any) -> list[Any]:
    """The fed arrays for the tensors of :func:`key_parts`.

    Raises:
        DTypeError: the value for a sparse tensor does not have its parts.
    """
    if not isinstance(key, SparseTensor):
        return [value]
    if not isinstance(value, tuple) or len(value) != 3:
        raise DTypeError(
            f"Cannot feed {value!r} for a SparseTensor: feed a "
            "v1.SparseTensorValue(indices, values, dense_shape)."
        )
    return [*value] if not key.shape.is_static else [*value[:2]]
