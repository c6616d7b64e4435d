"""SparseTensors from tensors and back, and functions of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import tree
from dualflow.core.dtypes import float32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import minimum
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, fill, ones
from dualflow.ops.joining import concat, stack
from dualflow.ops.positions import range as arange
from dualflow.ops.reduction import reduce_all
from dualflow.ops.scattering import gather_nd, tensor_scatter_nd_update
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape as shape_tensor
from dualflow.ops.sparse.row_major import as_int64, row_major_positions, sparse
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import int_or_symbolic

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike
    from dualflow.ops.tensor import Tensor


def to_dense(
    sp_input: SparseTensor,
    default_value: TensorLike | None = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """The dense tensor of a SparseTensor, with ``default_value`` for elements that are not stored.

    Args:
        sp_input: a SparseTensor.
        default_value: a number or a string; None for 0 or the empty string.
        validate_indices: whether the indices must be sorted and distinct; if not, the last of several
            elements at a position counts.

    Returns:
        A tensor with the shape and dtype of ``sp_input``.

    Raises:
        InvalidArgumentError: the indices are not sorted, or one occurs twice.
        OutOfRangeError: an index is outside of the shape.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> x = df.SparseTensor([[0, 1], [1, 0]], [5, 6], [2, 2])
    >>> df.sparse.to_dense(x, default_value=-1).numpy().tolist()
    [[-1, 5], [6, -1]]
    """
    x = sparse(sp_input)
    values, shape = x.values, x.sizes()
    if validate_indices:
        numbers = row_major_positions(x.indices, shape)
        values = required(
            values,
            reduce_all(numbers[1:] > numbers[:-1]),
            "The indices of a SparseTensor are out of order or repeated; sort them with df.sparse.reorder, "
            "or take the last of several elements with df.sparse.to_dense(x, validate_indices=False).",
        )
    absent = "" if x.dtype.is_string else 0
    number = convert_to_tensor(absent if default_value is None else default_value, dtype_hint=x.dtype)
    background = fill(shape, cast(number, x.dtype))
    if not len(x.shape):
        return concat([convert_to_tensor([background]), values], 0)[-1]
    return tensor_scatter_nd_update(background, x.indices, values)


def from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """The SparseTensor of the elements of ``tensor`` that are not 0.

    Args:
        tensor: a tensor of one axis or more, of any dtype.

    Returns:
        A SparseTensor with the shape and dtype of ``tensor``.

    Raises:
        InvalidArgumentError: ``tensor`` is a scalar.

    >>> import dualflow as df
    >>> df.sparse.from_dense([[0, 1], [2, 0]]).indices.numpy().tolist()
    [[0, 1], [1, 0]]
    """
    x = convert_to_tensor(tensor)
    if not len(x.shape):
        raise InvalidArgumentError("A tensor without axes has no places; df.reshape(x, [1]) has one.")
    indices = where(x)
    sizes = x.shape if x.shape.is_static else shape_tensor(x, int64)
    return SparseTensor(indices, gather_nd(x, indices), sizes)


def eye(
    num_rows: IntLike,
    num_columns: IntLike | None = None,
    dtype: DTypeLike = float32,
    name: str | None = None,
) -> SparseTensor:
    """The identity matrix as a SparseTensor.

    Args:
        num_rows: the number of rows, which may be known at run time only.
        num_columns: the number of columns, likewise; None for as many as rows.
        dtype: its dtype; float32 by default.

    Returns:
        A SparseTensor of shape ``(num_rows, num_columns)``.

    Raises:
        DTypeError: a size is not an integer.

    >>> import dualflow as df
    >>> df.sparse.eye(2, 3).indices.numpy().tolist()
    [[0, 0], [1, 1]]
    """
    rows = int_or_symbolic(num_rows, "num_rows")
    columns = rows if num_columns is None else int_or_symbolic(num_columns, "num_columns")
    if isinstance(rows, int) and isinstance(columns, int):
        count: Any = min(rows, columns)
        places: Any = np.arange(count).repeat(2).reshape(-1, 2)
    else:
        count = minimum(as_int64(rows), as_int64(columns))
        places = stack([arange(count)] * 2, 1)
    return SparseTensor(places, ones([count], dtype), [rows, columns])


@entry
def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> SparseTensor:
    """``op`` applied to the values of SparseTensors, as a SparseTensor with their indices.

    Args:
        op: a function of tensors whose result has as many elements as the values.
        *args: its arguments.
        **kwargs: its arguments by name.

    Returns:
        A SparseTensor.

    Raises:
        InvalidArgumentError: no argument is a SparseTensor, or they have different indices.

    >>> import dualflow as df
    >>> df.sparse.map_values(df.square, df.SparseTensor([[1]], [3], [4])).values.numpy()
    array([9], dtype=int32)
    """
    flat, structure = tree.flatten((args, kwargs), lambda x: isinstance(x, SparseTensor))
    tensors = [x for x in flat if isinstance(x, SparseTensor)]
    if not tensors:
        raise InvalidArgumentError(
            "No SparseTensor in argument list of map_values; call the function itself."
        )
    if any(not x.shape.is_compatible_with(tensors[0].shape) for x in tensors):
        raise InvalidArgumentError(
            f"The SparseTensors of map_values have one shape, not {[tuple(x.shape) for x in tensors]}."
        )
    plain, named = tree.unflatten(structure, [x.values if isinstance(x, SparseTensor) else x for x in flat])
    values = convert_to_tensor(op(*plain, **named))
    for other in tensors[1:]:
        if other.indices is not tensors[0].indices:
            values = required(
                values,
                reduce_all(equal(other.indices, tensors[0].indices)),
                "The SparseTensors of map_values have other places; df.sparse.add joins them.",
            )
    return tensors[0].with_values(values)
