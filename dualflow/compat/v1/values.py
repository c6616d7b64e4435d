"""The values of sparse tensors as NumPy arrays."""

from __future__ import annotations

from typing import Any, NamedTuple


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
