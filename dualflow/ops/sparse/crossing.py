"""Crosses of features: one feature for each combination of the features of a row, hashed to buckets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import reshape
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.positions import range as counting
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.shapes import shape as shape_of
from dualflow.ops.shapes import size as size_of
from dualflow.ops.sparse.row_major import indices_at
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import static_int
from dualflow.ops.tensor_sizes import axis_sizes
from dualflow.ops.text.hashes import combined_fingerprints, fingerprint64, hash_strings

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike

_HASH_KEY: Final = 0xDECAFCAFFE
_LARGEST: Final = (1 << 63) - 1


def _features(x: Array) -> Array:
    """Each feature as a 64-bit integer: a string's fingerprint, an integer itself."""
    if x.dtype.kind != "O":
        return x.astype(np.uint64)
    return hash_strings(x.ravel().tolist(), fingerprint64).reshape(x.shape)


def _crosses(*columns: Array, buckets: int, key: int) -> Array:
    if len({len(column) for column in columns}) > 1:
        raise ValueError("numbers of rows differ")
    hashes = np.full((len(columns[0]), 1), key, np.uint64)
    for column in columns:
        combined = combined_fingerprints(hashes[:, :, None], _features(column)[:, None, :])
        hashes = combined.reshape(len(column), hashes.shape[1] * column.shape[1])
    return (hashes % np.uint64(buckets)).astype(np.int64)


def _crosses_spec(*columns: TensorSpec, **attrs: Any) -> TensorSpec:
    rows = {c.shape[0] for c in columns if c.shape[0] is not None}
    if len(rows) > 1:
        raise InvalidArgumentError(f"crosses features of the same rows, not of {sorted(rows)} rows.")
    sizes = [c.shape[1] for c in columns]
    width = None if None in sizes else math.prod(size for size in sizes if size is not None)
    return TensorSpec.of(Shape([rows.pop() if rows else None, width]), int64)


_CROSS: Final = register(
    Op(
        name="hashed_crosses",
        doc="The bucket of each combination of the features of a row, one of each input.",
        infer=_crosses_spec,
        kernel=_crosses,
        kind=Opaque("hashes are computed by NumPy"),
        strings=True,
        samples=(
            Sample(
                (Domain(-50, 50, "i", (3, 2), dtype="int64"), Domain(-50, 50, "i", (3, 4), dtype="int64")),
                {"buckets": 100, "key": _HASH_KEY},
            ),
        ),
    )
)


def cross_hashed(
    inputs: Sequence[TensorLike],
    num_buckets: IntLike = 0,
    hash_key: IntLike | None = None,
    name: str | None = None,
) -> SparseTensor:
    """The bucket of each combination of the features of a row, which has one feature of each input.

    The numbers are TensorFlow's.

    Args:
        inputs: matrices of integers or strings with one row for each example, dense.
        num_buckets: the number of buckets; 0 for hashes of 63 bits.
        hash_key: the integer that hashes begin with; None for TensorFlow's.

    Returns:
        An int64 SparseTensor, whose rows have all combinations; those of the last input are consecutive.

    Raises:
        InvalidArgumentError: no inputs, inputs that are not dense matrices of the same number of rows, or a
            negative number of buckets.
        DTypeError: floats or other dtypes.

    >>> import dualflow as df
    >>> crosses = df.sparse.cross_hashed([[["a"], ["b"]], [["c", "d"], ["e", "f"]]], num_buckets=100)
    >>> crosses.shape, crosses.indices.numpy().tolist()
    ((2, 2), [[0, 0], [0, 1], [1, 0], [1, 1]])
    """
    buckets = static_int(num_buckets, "num_buckets")
    if buckets < 0:
        raise InvalidArgumentError(f"num_buckets is 0 or more, not {buckets}.")
    key = _HASH_KEY if hash_key is None else static_int(hash_key, "hash_key")
    columns = [_column(x) for x in inputs]
    if not columns:
        raise InvalidArgumentError("cross_hashed takes one or more inputs, not none.")
    attrs = {"buckets": buckets or _LARGEST, "key": key & ((1 << 64) - 1)}
    crosses = dispatch.current().apply(_CROSS, tuple(columns), attrs)
    indices = indices_at(counting(size_of(crosses, int64)), axis_sizes(crosses, int64))
    dense_shape = tuple(crosses.shape) if crosses.shape.is_static else shape_of(crosses, int64)
    return SparseTensor(indices, reshape(crosses, [-1]), dense_shape)


def _column(x: Any) -> Any:
    if isinstance(x, SparseTensor | RaggedRows):
        raise InvalidArgumentError(
            f"cross_hashed takes dense matrices, not a {type(x).__name__}; make one with df.sparse.to_dense, "
            "or x.to_tensor()."
        )
    column = convert_to_tensor(x)
    if not (column.dtype.is_string or column.dtype.is_integer):
        raise DTypeError(f"cross_hashed takes integers or strings, not {column.dtype.name}.")
    if len(column.shape) != 2:
        raise InvalidArgumentError(
            f"cross_hashed takes matrices, with a row for each example, not shape {column.shape}; reshape it."
        )
    return column if column.dtype.is_string else cast(column, int64)
