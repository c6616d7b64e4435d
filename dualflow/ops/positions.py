"""Tensors of positions: ranges, grids, the identity matrix and one-hot rows."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, bool_, float32, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, broadcast, check_size, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import divide, floordiv, maximum
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, greater, less, logical_and, not_equal
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.joining import concat
from dualflow.ops.op_kinds import Elementwise, OperandAttributes
from dualflow.ops.operand_attributes import apply_sized
from dualflow.ops.record import REGISTRY, Op, promote_together, register
from dualflow.ops.rounding import ceil
from dualflow.ops.samples import Sample
from dualflow.ops.selection import where
from dualflow.ops.static import (
    dtype_of,
    int_or_symbolic,
    ints_or_symbolic,
    partial_shape,
    shape_of,
    static_int,
    static_value,
)

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, IntLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor

Array = np.ndarray[Any, Any]


def _iota(shape: tuple[int, ...], axis: int, dtype: DType) -> Array:
    along = np.arange(shape[axis], dtype=dtype.dtype)
    if len(shape) == 1:
        return along
    out = np.empty(shape, dtype.dtype)
    out[...] = along.reshape(-1, *(1,) * (len(shape) - 1 - axis))
    return out


def _iota_infer(shape: Sequence[int], axis: int, dtype: DType) -> TensorSpec:
    check_size(shape)
    return TensorSpec.of(Shape(shape), dtype)


IOTA = register(
    Op(
        name="iota",
        doc="""Each element's position along ``axis``.""",
        infer=_iota_infer,
        kernel=_iota,
        kind=Elementwise(lambda m, shape, axis, dtype: m.cast(m.index(axis), dtype)),
        operand_attributes=OperandAttributes(sizes=("shape",)),
        samples=(
            Sample((), {"shape": (5,), "axis": 0, "dtype": int32}),
            Sample((), {"shape": (2, 3, 4), "axis": 1, "dtype": float32}),
        ),
    )
)


def iota(shape: Any, axis: int, dtype: Any = int32) -> Any:
    """Each element's position along ``axis``, in a tensor of shape ``shape``.

    >>> iota([2, 3], axis=1).numpy().tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    sizes: Any = partial_shape(shape)
    attrs = {"shape": sizes, "axis": normalize_axis(axis, len(sizes)), "dtype": as_dtype(dtype)}
    if None in sizes:
        return apply_sized(IOTA, (), {**attrs, "shape": ints_or_symbolic(shape, "shape")})
    return dispatch.current().apply(IOTA, (), attrs)


def _check_range(numbers: Sequence[TensorSpec]) -> None:
    shown = ", ".join(map(str, numbers))
    if any(x.dtype.kind not in "iuf" for x in numbers):
        raise DTypeError(f"range({shown}): counts in real numbers; convert them with df.cast.")
    if any(len(x.shape) for x in numbers):
        raise InvalidArgumentError(f"range({shown}): takes scalars; index or reduce the others.")


def _dynamic_range(start: Any, limit: Any, delta: Any) -> Any:
    """:func:`range` of numbers that are known at run time only: ``start + iota * delta``."""
    start, limit, delta = promote_together(start, limit, delta)
    _check_range([x.spec for x in (start, limit, delta)])
    begins_at_zero, step = _is_number(start, 0), static_value(delta)
    if step is None:
        delta = required(delta, not_equal(delta, zeros_like(delta)), _NO_DELTA)
    elif not step:
        raise InvalidArgumentError(_NO_DELTA)
    if not start.dtype.is_integer:  # a range has no gradient
        start, delta = (x if static_value(x) is not None else stop_gradient(x) for x in (start, delta))
    first, last, each = (cast(x, int64) if x.dtype.is_integer else x for x in (start, limit, delta))
    distance = last if begins_at_zero else last - first
    if step == 1 and start.dtype.is_integer:
        count = distance
    elif start.dtype.is_integer:
        count = -floordiv(-distance, each)
    else:
        count = cast(ceil(distance / each), int64)
    numbers = iota((maximum(count, 0),), 0, start.dtype)
    numbers = numbers if step == 1 else numbers * delta
    return numbers if begins_at_zero else numbers + start


def _is_number(x: Any, number: int) -> bool:
    value = static_value(x)
    return value is not None and bool(value == number)


_axes = builtins.range
_NO_DELTA = "range takes a delta other than 0, or it would never end."


def _count(start: Any, limit: Any, delta: Any) -> int:
    if delta == 0:
        raise InvalidArgumentError(_NO_DELTA)
    if start.dtype.kind in "iu":
        return max(0, -((int(start) - int(limit)) // int(delta)))
    return max(0, math.ceil((limit - start) / delta))  # in their own dtype, so that 0.3 is 3 steps of 0.1


def range(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The numbers ``start``, ``start + delta``, ... below ``limit``; ``range(n)`` starts at 0.

    Args:
        start: the first number, a real scalar; the limit if ``limit`` is None.
        limit: the end, which is excluded.
        delta: the step, not 0; a negative one counts down to above ``limit``.
        dtype: the dtype of the result; None for the common dtype of the three numbers.

    Returns:
        A tensor of one axis.

    Raises:
        InvalidArgumentError: ``delta`` is 0, or a number is not a scalar.
        DTypeError: a number is not real, or a float where ``dtype`` is an integer dtype.

    >>> import dualflow as df
    >>> df.range(3, 18, 3).numpy()
    array([ 3,  6,  9, 12, 15], dtype=int32)
    """
    if limit is None:
        start, limit = 0, start
    dtypes = [as_dtype(float32 if type(x) is float else dtype_of(x)) for x in (start, limit, delta)]
    values = [np.asarray(x) if type(x) is float else static_value(x) for x in (start, limit, delta)]
    if any(x is None for x in values):
        numbers = _dynamic_range(start, limit, delta)
        return numbers if dtype is None else cast(numbers, dtype)
    arrays = [x for x in values if x is not None]
    _check_range([TensorSpec(x.shape, t) for x, t in zip(arrays, dtypes, strict=True)])
    common = np.result_type(*([t.dtype for t in dtypes if t.is_floating] or [t.dtype for t in dtypes]))
    target = as_dtype(common if dtype is None else dtype)
    if target.is_integer and common.kind == "f":
        raise DTypeError(f"range makes {target.name} of integers, not of floats; cast its result instead.")
    wide = common if target.is_integer else np.result_type(common, target.dtype)
    first, last, step = (x.astype(wide) for x in arrays)
    count = _count(first, last, step)
    numbers = iota((count,), 0, target)
    if step != 1:
        numbers = numbers * cast(step, target)
    return numbers + cast(first, target) if first else numbers


def linspace(
    start: TensorLike, stop: TensorLike, num: IntLike, name: str | None = None, axis: int = 0
) -> Tensor:
    """``num`` numbers at equal distances from ``start`` to ``stop``, both included.

    Args:
        start: the first number, or a tensor of first numbers; integers become float64.
        stop: the last number, or numbers; the shapes broadcast.
        num: the number of points, an integer of at least 1.
        axis: the axis of the points in the result; the first by default.

    Returns:
        A tensor of the broadcast shape with an axis of size ``num``, of the common float dtype.

    Raises:
        InvalidArgumentError: ``num`` is below 1, or ``axis`` is out of range.
        DTypeError: ``num`` is not an integer.

    >>> import dualflow as df
    >>> df.linspace(0.0, 1.0, 5).numpy().tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    count = int_or_symbolic(num, "num")
    is_static = type(count) is int
    if is_static and count < 1:
        raise InvalidArgumentError(f"linspace makes 1 number or more, not {count}.")
    ends: tuple[Tensor, Tensor] = divide.op.prepare((start, stop), dispatch.current())
    start, stop = ends
    if not is_static:
        count = required(count, greater(count, 0), "linspace makes 1 number or more.")
    rank = len(broadcast([start.shape, stop.shape]))
    new_axis = normalize_axis(axis, rank + 1)
    sizes = [1] * (rank + 1)
    sizes[new_axis] = count
    position = iota(sizes, new_axis, start.dtype)
    first, last = expand_dims(start, new_axis), expand_dims(stop, new_axis)
    steps = count - 1 if is_static else cast(count - 1, start.dtype)
    inner = first + position * ((last - first) / (max(steps, 1) if is_static else maximum(steps, 1)))
    if is_static:
        return where(equal(position, steps), last, inner) if steps else inner
    return where(logical_and(equal(position, steps), greater(steps, 0)), last, inner)


def eye(
    num_rows: IntLike,
    num_columns: IntLike | None = None,
    batch_shape: ShapeLike | None = None,
    dtype: DTypeLike = float32,
    name: str | None = None,
) -> Tensor:
    """The identity matrix: ones on the main diagonal, zeros elsewhere.

    Args:
        num_rows: the number of rows.
        num_columns: the number of columns; None for as many as rows.
        batch_shape: leading sizes over which the matrix is repeated; None for a single matrix.
        dtype: the dtype of the result; float32 by default.

    Returns:
        A tensor of shape ``(*batch_shape, num_rows, num_columns)``.

    Raises:
        InvalidArgumentError: a size is negative.
        DTypeError: a size is not an integer.

    >>> import dualflow as df
    >>> df.eye(2).numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = int_or_symbolic(num_rows, "num_rows")
    columns = rows if num_columns is None else int_or_symbolic(num_columns, "num_columns")
    matrix = cast(equal(iota((rows, 1), 0), iota((1, columns), 1)), dtype)
    if batch_shape is None:
        return matrix
    return broadcast_to(matrix, [*ints_or_symbolic(batch_shape, "batch_shape"), rows, columns])


def one_hot(
    indices: TensorLike,
    depth: IntLike,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """A vector for each index: ``on_value`` at the position of the index, ``off_value`` elsewhere.

    Args:
        indices: integers of any shape; an index outside ``[0, depth)`` gives a vector of ``off_value``.
        depth: the size of the new axis.
        on_value: a scalar; None for 1.
        off_value: a scalar; None for 0.
        axis: the position of the new axis; None for the last.
        dtype: the dtype of the result; None for that of the two values, or float32 without them.

    Returns:
        A tensor with one axis more than ``indices``, of size ``depth``.

    Raises:
        DTypeError: ``indices`` or ``depth`` are not integers.
        InvalidArgumentError: ``depth`` is negative, or ``axis`` is out of range.

    >>> import dualflow as df
    >>> df.one_hot([0, 2], 3).numpy().tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    count, rank = int_or_symbolic(depth, "depth"), len(shape_of(indices))
    where_axis = normalize_axis(-1 if axis is None else static_int(axis, "axis"), rank + 1)
    indices = convert_to_tensor(indices, dtype_hint=int64)
    if not indices.dtype.is_integer:
        raise DTypeError(f"one_hot takes integer indices, not {indices.dtype.name}; cast them with df.cast.")
    sizes = [1] * (rank + 1)
    sizes[where_axis] = count
    hot = equal(expand_dims(indices, where_axis), iota(sizes, where_axis, indices.dtype))
    if on_value is None and off_value is None:
        return cast(hot, float32 if dtype is None else dtype)
    on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value
    if dtype is not None:
        on, off = (cast(_in_width(x, as_dtype(dtype)), dtype) for x in (on, off))
    return where(hot, on, off)


def _in_width(x: Any, dtype: DType) -> Any:
    """A Python float as float64 if ``dtype`` is a float, so that a cast rounds only once."""
    return np.float64(x) if type(x) is float and dtype.is_inexact else x


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """The coordinates of the points of a grid, one tensor for each of the vectors ``args``.

    Args:
        *args: the coordinates along each axis, which are flattened; of any dtype.
        indexing: "xy", where the first vector varies along the columns, or "ij", where it varies along the
            rows.

    Returns:
        A list of tensors of one shape: the sizes of the vectors, the first two of them swapped for "xy". Each
        has the dtype of its vector.

    Raises:
        InvalidArgumentError: ``indexing`` is neither "xy" nor "ij".

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.meshgrid([1, 2], [3, 4, 5], indexing="ij")]
    [[[1, 1, 1], [2, 2, 2]], [[3, 4, 5], [3, 4, 5]]]
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"meshgrid's indexing is 'xy' or 'ij', not {indexing!r}.")
    vectors = [reshape(convert_to_tensor(x), [-1]) for x in args]
    order = list(_axes(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shape = [0] * len(order)
    for axis, vector in zip(order, vectors, strict=True):
        shape[axis] = vector.shape[0]
    return [
        broadcast_to(reshape(vector, [-1 if a == axis else 1 for a in _axes(len(order))]), shape)
        for axis, vector in zip(order, vectors, strict=True)
    ]


def sequence_mask(
    lengths: TensorLike, maxlen: IntLike | None = None, dtype: DTypeLike = bool_, name: str | None = None
) -> Tensor:
    """A row for each length, True at the positions below it.

    Args:
        lengths: integers or floats of any shape.
        maxlen: the size of the rows; None for the greatest length.
        dtype: the dtype of the result; bool by default.

    Returns:
        A tensor of shape ``(*lengths.shape, maxlen)`` and dtype ``dtype``.

    Raises:
        DTypeError: ``lengths`` doesn't hold integers or floats.

    >>> import dualflow as df
    >>> df.sequence_mask([1, 3], 3).numpy().tolist()
    [[True, False, False], [True, True, True]]
    """
    x = convert_to_tensor(lengths)
    if not (x.dtype.is_integer or x.dtype.is_floating):
        raise DTypeError(f"lengths are integers, not {x.dtype.name}.")
    count = _longest(x) if maxlen is None else int_or_symbolic(maxlen, "maxlen")
    mask = less(iota((count,), 0, x.dtype), expand_dims(x, -1))
    return mask if as_dtype(dtype) is bool_ else cast(mask, dtype)


def _longest(lengths: Any) -> Any:
    """The greatest length; 0 if there are none."""
    values = static_value(lengths)
    if values is not None:
        return int(values.max(initial=0))
    with_zero = concat([reshape(lengths, [-1]), np.zeros(1, lengths.dtype.dtype)], 0)
    return dispatch.current().apply(REGISTRY["reduce_max"], (with_zero,), {"axis": (0,), "keepdims": False})
