"""insert, delete, pad and trim_zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.manipulation import moveaxis
from dualflow.numpy.operands import flat, numpy_result, tensor, to
from dualflow.numpy.reordering import flip
from dualflow.numpy.sorting import stable_argsort
from dualflow.ops import broadcasting, joining, repetition, statistics
from dualflow.ops.arithmetic import maximum, minimum, mod
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, logical_and, logical_not
from dualflow.ops.conversion import cast
from dualflow.ops.masking import boolean_mask
from dualflow.ops.positions import range as range_op
from dualflow.ops.reduction import reduce_all, reduce_any, reduce_max, reduce_min
from dualflow.ops.rounding import round
from dualflow.ops.scans import cumsum
from dualflow.ops.selection import where as where_op
from dualflow.ops.static import static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


def trim_zeros(filt: TensorLike, trim: str = "fb", axis: int | None = None) -> Tensor:
    """A vector without the zeros at its ends.

    Args:
        filt: a vector of numbers.
        trim: "f" for the front, "b" for the back, or "fb" for both.
        axis: ignored: a vector has one axis.

    Returns:
        A vector of the dtype of ``filt``; its size depends on the elements.

    Raises:
        InvalidArgumentError: ``filt`` is not a vector, or ``trim`` has another letter.
        DTypeError: ``filt`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.trim_zeros([0, 1, 0, 2, 0]).numpy()
    array([1, 0, 2])
    """
    x = tensor(filt)
    if len(x.shape) != 1 or set(trim.lower()) - set("fb"):
        raise InvalidArgumentError(
            f"trim_zeros takes a vector and trim 'f', 'b' or 'fb', not shape {x.shape} and {trim!r}."
        )
    present = to(x, bool)
    from_front = flip(_from_first_true(flip(present))) if "b" in trim.lower() else None
    keep = _from_first_true(present) if "f" in trim.lower() else from_front
    if keep is not None and from_front is not None:
        keep = keep & from_front
    return x if keep is None else boolean_mask(x, keep)


def _from_first_true(x: Any) -> Tensor:
    """A mask of the elements at or after the first true one of ``x``."""
    return cumsum(cast(x, np.int64), 0) > 0


def insert(arr: TensorLike, obj: TensorLike, values: TensorLike, axis: int | None = None) -> Tensor:
    """``arr`` with ``values`` inserted along ``axis``, before the indices ``obj``.

    Args:
        obj: an integer, a list of them, a mask or a slice, known while tracing.
        values: numbers that broadcast to the inserted part; cast to the dtype of ``arr``.
        axis: the axis; by default ``arr`` is flattened.

    Returns:
        A tensor with the shape of ``arr``, larger along ``axis``, and its dtype.

    Raises:
        InvalidArgumentError: an index is out of range, or ``values`` doesn't broadcast.
        DTypeError: ``obj`` is symbolic.

    >>> import dualflow as df
    >>> df.numpy.insert([1, 2, 3], 1, 9).numpy()
    array([1, 9, 2, 3])
    """
    x = flat(tensor(arr)) if axis is None else tensor(arr)
    positive_axis = 0 if axis is None else normalize_axis(axis, len(x.shape))
    sizes = operands.sizes(x)
    size = sizes[positive_axis]
    indices = _insert_indices(obj, size)
    new_values = tensor(values, x.dtype)
    count = operands.length(indices)
    if not indices.shape:  # all values go before one index
        if new_values.shape:
            new_axes = (None,) * (len(x.shape) - len(new_values.shape))
            new_values = moveaxis(new_values[new_axes], 0, positive_axis)
        count = new_values.shape[positive_axis] if len(new_values.shape) == len(x.shape) else 1
        repeat = np.broadcast_to if type(size) is int else broadcasting.broadcast_to
        indices = repeat(indices, [count])
    new = broadcasting.broadcast_to(
        new_values, [count if a == positive_axis else d for a, d in enumerate(sizes)]
    )
    order = _insertion_order(indices, size)
    return gather(joining.concat([x, new], positive_axis), order, axis=positive_axis)


def _insert_indices(obj: Any, size: Any) -> Any:
    """The indices of :func:`insert` in an axis of ``size``, counted from the front; a scalar stays one."""
    if isinstance(obj, slice):
        return (np.arange(size) if type(size) is int else _positions(size))[obj]
    positions = np.asarray(static_positions(obj))
    if positions.dtype.kind == "b":
        positions = np.flatnonzero(positions)
    return _from_front(positions, size, positions <= size, obj)


def _insertion_order(indices: Any, size: Any) -> Any:
    """The order of elements and inserted ones, in which one at index i is before element i."""
    if type(size) is int:
        return np.argsort(np.concatenate([2 * np.arange(size) + 1, 2 * indices]), kind="stable")
    return stable_argsort(joining.concat([2 * _positions(size) + 1, 2 * indices], 0), 0)


def _positions(size: Any) -> Tensor:
    """The indices of an axis whose size is known at run time only."""
    return range_op(0, size, dtype=int64)


def _from_front(positions: np.ndarray[Any, Any], size: Any, ok: Any, obj: Any) -> Any:
    """Static ``positions`` in an axis of ``size``, counted from the front.

    Raises:
        InvalidArgumentError: one of them is not ``ok`` or lies before the axis; at run time if ``size`` is
            dynamic.
    """
    if type(size) is not int:
        from_front = where_op(positions < 0, positions + size, positions)
        message = f"an index in {obj!r} is out of range for the axis."
        return required(from_front, reduce_all(logical_and(ok, from_front >= 0)), message)
    indices = np.where(positions < 0, positions + size, positions)
    if not np.all(ok & (indices >= 0)):
        raise InvalidArgumentError(f"An index in {obj!r} is out of range for an axis of size {size}.")
    return indices


def delete(arr: TensorLike, obj: TensorLike, axis: int | None = None) -> Tensor:
    """``arr`` without the elements at the indices ``obj`` along ``axis``.

    Args:
        obj: an integer, a list of them, a mask or a slice, known while tracing.
        axis: the axis; by default ``arr`` is flattened.

    Returns:
        A tensor with the shape of ``arr``, smaller along ``axis``, and its dtype.

    Raises:
        InvalidArgumentError: an index is out of range.
        DTypeError: ``obj`` is symbolic.

    >>> import dualflow as df
    >>> df.numpy.delete([1, 2, 3], 1).numpy()
    array([1, 3])
    """
    x = flat(tensor(arr)) if axis is None else tensor(arr)
    positive_axis = 0 if axis is None else normalize_axis(axis, len(x.shape))
    size = operands.sizes(x)[positive_axis]
    indices = obj if isinstance(obj, slice) else np.asarray(static_positions(obj))
    if type(size) is not int:
        return boolean_mask(x, _remaining(obj, indices, size), axis=positive_axis)
    try:
        remaining = np.delete(np.arange(size), indices)
    except (IndexError, ValueError) as error:
        raise InvalidArgumentError(
            f"delete: {error}; the indices are those of axis {positive_axis}."
        ) from None
    return gather(x, remaining, axis=positive_axis)


def _remaining(obj: Any, indices: Any, size: Any) -> Tensor:
    """A mask of the elements that :func:`delete` keeps in an axis whose size is known at run time only."""
    positions = _positions(size)
    if isinstance(indices, slice):
        deleted = positions[indices]
    elif indices.dtype.kind == "b":
        message = f"delete takes a mask of the size of the axis, not of {indices.size} elements."
        return required(logical_not(indices), size == indices.size, message)
    else:
        deleted = _from_front(indices.reshape(-1), size, indices.reshape(-1) < size, obj)
    return logical_not(reduce_any(equal(positions[:, None], deleted), 1))


def static_positions(value: Any) -> Any:
    """``value`` as static indices: the result's shape depends on them."""
    positions = static_value(value)
    if positions is None:
        raise DTypeError(
            "The indices must be static, because the result's shape depends on them, but "
            f"{value!r} is symbolic."
        )
    return positions if positions.size else positions.astype(np.int64)


def pad(array: TensorLike, pad_width: TensorLike, mode: str = "constant", **kwargs: Any) -> Tensor:
    """``array`` with elements added before and after it along each axis.

    Args:
        array: a tensor, an array or nested lists of numbers, of any shape.
        pad_width: how many elements to add: a number for all ends, a pair (before, after), or a pair for each
            axis.
        mode: "constant" (``constant_values``), "edge", "reflect", "symmetric", "wrap", "linear_ramp" (to
            ``end_values``), "maximum", "minimum" or "mean" of the axis, or "empty" (zeros).
        **kwargs: NumPy's options of the mode.

    Returns:
        A tensor of the dtype of ``array``, larger by the widths along each axis.

    Raises:
        InvalidArgumentError: another mode, an option that the mode doesn't have, a negative width, or an
            axis is empty, and the mode neither "constant" nor "empty".
        DTypeError: ``mode`` is a function, or ``array`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.pad([1, 2, 3], 2, mode="wrap").numpy()
    array([2, 3, 1, 2, 3, 1, 2])
    """
    x = tensor(array)
    rank = len(x.shape)
    if isinstance(pad_width, dict):
        widths = np.zeros((rank, 2), int)
        for axis, width in pad_width.items():
            widths[axis] = width
    else:
        widths = numpy_result(
            lambda: np.broadcast_to(np.asarray(pad_width).astype(int), (rank, 2)),
            "give a width, a pair (before, after), or a pair for each axis",
        )
    if callable(mode):
        raise DTypeError(
            "pad takes no function as mode: tensors don't change; join the parts with concatenate."
        )
    allowed = _PAD_OPTIONS.get(mode)
    if allowed is None or set(kwargs) - {allowed}:
        raise InvalidArgumentError(
            f"pad has no mode {mode!r} with {sorted(kwargs)}; the modes are {', '.join(_PAD_OPTIONS)}."
        )
    if widths.size and widths.min() < 0:
        raise InvalidArgumentError(f"pad's widths are 0 or more, not {pad_width!r}.")
    if mode in ("constant", "empty"):
        return _with_constants(x, widths, kwargs.get("constant_values", 0))
    if mode in _GATHERING_MODES:
        for axis, (before, after) in enumerate(widths.tolist()):
            if before or after:
                size = operands.sizes(x)[axis]
                x = gather(x, _source_indices(mode, size, before, after, kwargs), axis=axis)
        return x
    x = _nonempty(x, widths, mode)
    if mode == "linear_ramp":
        return _with_ramps(x, widths, kwargs.get("end_values", 0))
    return _with_statistic(x, widths, mode, kwargs.get("stat_length"))


_MODES = """
constant constant_values
edge
linear_ramp end_values
maximum stat_length
mean stat_length
median stat_length
minimum stat_length
reflect reflect_type
symmetric reflect_type
wrap
empty
"""
_PAD_OPTIONS = {row.split()[0]: row.partition(" ")[2] for row in _MODES.strip().splitlines()}
"""The modes of :func:`pad`, and the option of each."""
_GATHERING_MODES = ("edge", "reflect", "symmetric", "wrap")
"""The modes in which each new element is a copy of another element."""


def _nonempty(x: Any, widths: np.ndarray[Any, Any], mode: str) -> Any:
    """``x``, which has elements along the axes that are padded."""
    for axis, width in enumerate(widths.sum(axis=1).tolist()):
        message = f"pad can't extend an empty axis in mode {mode!r}."
        size = operands.sizes(x)[axis]
        if width and type(size) is not int:
            x = operands.with_required_size(x, [axis], size > 0, message)
        elif width and size == 0:
            raise InvalidArgumentError(message)
    return x


def _source_indices(mode: str, size: Any, before: int, after: int, options: dict[str, Any]) -> Any:
    """The index of the source element for each element of the padded axis."""
    if options.get("reflect_type", "even") != "even":
        raise InvalidArgumentError(
            "pad's reflect_type is 'even'; compute an odd reflection as 2 * edge - even."
        )
    if type(size) is not int:
        return _dynamic_source_indices(mode, size, before, after)
    try:
        return np.pad(np.arange(size), (before, after), mode=mode)  # type: ignore[call-overload]  # one of four
    except ValueError as error:
        raise InvalidArgumentError(f"pad: {error}.") from None


def _dynamic_source_indices(mode: str, size: Any, before: int, after: int) -> Any:
    """:func:`_source_indices` of an axis whose size is known at run time only."""
    size = required(size, size > 0, f"pad can't extend an empty axis in mode {mode!r}.")
    positions = _positions(size + (before + after)) - before
    if mode == "edge":
        return maximum(minimum(positions, size - 1), 0)
    if mode == "wrap":
        return mod(positions, size)
    period = maximum(2 * size - 2, 1) if mode == "reflect" else 2 * size
    forth = mod(positions, period)
    return minimum(forth, period - forth if mode == "reflect" else period - 1 - forth)


def _on_each_side(value: Any, rank: int) -> list[tuple[Any, Any]]:
    """An option as a pair for each axis: a number for all, a pair, or pairs; tensors may be among them."""
    rows = value if isinstance(value, list | tuple) else [value]
    if not any(isinstance(row, list | tuple) for row in rows):
        rows = [rows]
    pairs = [(*row, *row)[:2] if isinstance(row, list | tuple) else (row, row) for row in rows]
    return pairs * rank if len(pairs) == 1 else pairs


def _with_constants(x: Any, widths: np.ndarray[Any, Any], value: Any) -> Tensor:
    pairs = _on_each_side(value, len(x.shape))
    single = _single_value([v for pair in pairs for v in pair] or [value])
    if single is not None:
        constant = tensor(single, x.dtype)
        padded: Tensor = repetition.pad(x, widths.tolist(), constant_values=constant) if widths.size else x
        return padded
    for axis, (pair, width) in enumerate(zip(pairs, widths.tolist(), strict=True)):
        x = joining.concat(
            [
                _slab(tensor(pair[0], x.dtype), x, axis, width[0]),
                x,
                _slab(tensor(pair[1], x.dtype), x, axis, width[1]),
            ],
            axis,
        )
    return x


def _single_value(values: Sequence[Any]) -> Any:
    """The number that all ``values`` are; None if they differ, or are no Python numbers."""
    first = values[0]
    is_single = isinstance(first, int | float) and all(v is first or v == first for v in values)
    return first if is_single else None


def _slab(value: Any, x: Any, axis: int, width: int) -> Tensor:
    """``value`` in the shape of ``x``, but ``width`` along ``axis``."""
    sizes = operands.sizes(x)
    return broadcasting.broadcast_to(value, [width if a == axis else d for a, d in enumerate(sizes)])


def _with_ramps(x: Any, widths: np.ndarray[Any, Any], ends: Any) -> Tensor:
    """Numbers at equal distances between the edge and the end value."""
    for axis, (pair, (before, after)) in enumerate(
        zip(_on_each_side(ends, len(x.shape)), widths.tolist(), strict=True)
    ):
        front = (slice(None),) * axis
        first, last = x[(*front, slice(None, 1))], x[(*front, slice(-1, None))]
        parts = [_ramp(pair[0], first, axis, before), x, flip(_ramp(pair[1], last, axis, after), axis)]
        x = joining.concat(parts, axis)
    return x


def _ramp(end: Any, edge: Any, axis: int, width: int) -> Tensor:
    shape = [width if a == axis else 1 for a in range(len(edge.shape))]
    kind = edge.dtype if edge.dtype.is_inexact else np.float64
    fraction = tensor(np.arange(width).reshape(shape) / max(width, 1), kind)
    start = tensor(end, kind)
    return cast(start + (cast(edge, kind) - start) * fraction, edge.dtype)


def _with_statistic(x: Any, widths: np.ndarray[Any, Any], mode: str, length: Any) -> Tensor:
    if mode == "median" or length is not None:
        raise InvalidArgumentError(
            f"pad's mode {mode!r} takes the whole axis and no median here; pad with constants of your own."
        )
    reduction: Any = reduce_max if mode == "maximum" else reduce_min
    reduction = statistics.reduce_mean if mode == "mean" else reduction
    for axis, (before, after) in enumerate(widths.tolist()):
        floats = x if mode != "mean" or x.dtype.is_inexact else cast(x, np.float64)
        statistic = reduction(floats, axis, keepdims=True)
        edge = cast(round(statistic) if floats is not x else statistic, x.dtype)
        x = joining.concat([_slab(edge, x, axis, before), x, _slab(edge, x, axis, after)], axis)
    return x


complete_docstrings(globals())
make_entries(globals())
