"""Padding, tiling, reversing, rolling and repeating."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import TENSORS, AbstractTensor
from dualflow.core.dtypes import bool_, int64, uint64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import MAX_ELEMENTS, Dim, Shape, normalize_axes, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import maximum, mod
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.assembly import assembling
from dualflow.ops.batching_rules import BatchingRule
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor, ones_like
from dualflow.ops.indexing import GETITEM
from dualflow.ops.joining import as_tensor, concat, part
from dualflow.ops.masking import REPEATED, TOO_OFTEN
from dualflow.ops.op_kinds import CopyPieces, OperandAttributes
from dualflow.ops.operand_attributes import apply_sized
from dualflow.ops.positions import range as count_up
from dualflow.ops.record import Op, holds_tensors, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.selection import where
from dualflow.ops.static import (
    ints,
    ints_or_symbolic,
    require_static_sizes,
    shape_of,
    static_int,
    static_value,
)
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_size, axis_sizes, sizes_of
from dualflow.sizes.symbolic_sizes import SymInt, is_static, typical

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, IntsLike, TensorLike
    from dualflow.ops.tensor import Tensor


_WRITTEN_ONCE_FROM: Final = 1 << 14
"""The number of elements, typical ones of dynamic sizes, from which the inside of a padded array is written
only once."""


MOST_BROADCAST: Final = 1 << 15
"""The largest number of repetitions along an axis of dynamic size by a broadcast. More may be more elements
than memory can hold, which is checked where positions are counted."""


def _pad_infer(x: TensorSpec, paddings: tuple[tuple[Dim, Dim], ...], value: float) -> TensorSpec:
    if len(paddings) != len(x.shape) or any(p is not None and p < 0 for pair in paddings for p in pair):
        raise InvalidArgumentError(
            f"paddings {paddings} are not one (before, after) pair of 0 or more for each axis."
        )
    parts = [(d, *pair) for d, pair in zip(x.shape, paddings, strict=True)]
    sizes = [None if d is None or a is None or b is None else d + a + b for d, a, b in parts]
    return TensorSpec.of(Shape(sizes), x.dtype)


def _pad_pieces(
    out: Any, x: Any, paddings: tuple[tuple[int, int], ...], value: float
) -> list[tuple[Any, Any]]:
    """The pieces of a padded array: ``value`` around the input, which is copied last."""
    inside = tuple([slice(a, a + d) for d, (a, _) in zip(x.shape, paddings, strict=True)])
    copied = out[(*inside, ...)], x
    if typical(math.prod(x.shape)) < _WRITTEN_ONCE_FROM or not is_static(
        n for pair in paddings for n in pair
    ):
        return [(out, value), copied]
    around = [
        out[(*inside[:axis], slice(*edge), ...)]
        for axis, ((a, b), size) in enumerate(zip(paddings, out.shape, strict=True))
        for edge in ((0, a), (size - b, size))
        if edge[0] < edge[1]
    ]
    return [*((piece, value) for piece in around), copied]


def _pad_vjp(g: Any, out: Any, x: Any, paddings: tuple[tuple[Any, Any], ...], value: float) -> Any:
    if any(isinstance(n, AbstractTensor) for pair in paddings for n in pair):
        sizes = sizes_of(x)
        key = tuple([(a, a + sizes[axis], 1) for axis, (a, _) in enumerate(paddings)])
        return apply_sized(GETITEM, (g,), {"key": key})
    ends = [
        a + n if isinstance(a, SymInt) or isinstance(b, SymInt) else -b or None
        for n, (a, b) in zip(x.shape, paddings, strict=True)
    ]
    key = tuple((a, end, 1) for end, (a, _) in zip(ends, paddings, strict=True))
    return dispatch.current().apply(GETITEM, (g,), {"key": key})


PAD = register(
    Op(
        name="pad",
        doc="""``x`` with ``value`` around it.""",
        infer=_pad_infer,
        kernel=assembling(_pad_infer, _pad_pieces),
        kind=CopyPieces(_pad_pieces, is_pad=True),
        batching_rule=BatchingRule(first={"paddings": (0, 0)}),
        vjp=(_pad_vjp,),
        operand_attributes=OperandAttributes(sizes=("paddings",)),
        samples=(
            Sample((Domain(-50, 50, "fi", (2, 3)),), {"paddings": ((1, 2), (0, 1)), "value": 0}),
            Sample((Domain(-50, 50, "fi", (4,)),), {"paddings": ((2, 0),), "value": 7}),
            Sample((Domain(-50, 50, "f", (4,)),), {"paddings": ((1, 1),), "value": 1.41}),
        ),
    )
)


def pad(
    tensor: TensorLike,
    paddings: TensorLike,
    mode: str = "CONSTANT",
    constant_values: TensorLike = 0,
    name: str | None = None,
) -> Tensor:
    """``tensor`` with elements added before and after it on each axis.

    Args:
        tensor: a tensor of any shape and dtype.
        paddings: integers of shape ``(rank, 2)``: the numbers of elements before and after, for each axis.
        mode: "CONSTANT", "REFLECT" (mirrored, without the edge) or "SYMMETRIC" (mirrored, with it).
        constant_values: the scalar to pad with, in the dtype of the tensor; no gradient flows to it. For
            strings, 0 is the empty string.

    Returns:
        A tensor of the dtype of ``tensor``; the size of each axis grows by its two paddings.

    Raises:
        InvalidArgumentError: the mode is unknown, paddings are negative or of another shape, or an axis is
            too short to mirror.
        DTypeError: ``constant_values`` is not a scalar, or a float for a tensor of integers.

    >>> import dualflow as df
    >>> df.pad([1, 2, 3], [[2, 1]], "REFLECT").numpy()
    array([3, 2, 1, 2, 3, 2], dtype=int32)
    """
    tensor = as_tensor(tensor)
    table = _known_paddings(paddings)
    if table is None:
        return _padded_dynamically(tensor, convert_to_tensor(paddings), mode, constant_values)
    if table.ndim != 2 or table.shape[1] != 2 or table.shape[0] != len(tensor.shape):
        raise InvalidArgumentError(
            f"paddings are [before, after] for each of {len(tensor.shape)} axes, not {paddings!r}."
        )
    pairs = tuple([(a, b) if table.dtype == object else (int(a), int(b)) for a, b in table.tolist()])
    kind = mode.upper() if isinstance(mode, str) else None
    if kind == "CONSTANT":
        return _surrounded(tensor, pairs, constant_values)
    if kind not in ("REFLECT", "SYMMETRIC"):
        raise InvalidArgumentError(f"pad's mode is CONSTANT, REFLECT or SYMMETRIC, not {mode!r}.")
    for axis, (before, after) in enumerate(pairs):
        tensor = _mirrored(tensor, axis, before, after, 1 if kind == "REFLECT" else 0)
    return tensor


def _known_paddings(paddings: Any) -> Any:
    """The paddings as an array; None where they are symbolic tensors. Symbolic sizes are its elements."""
    if isinstance(paddings, list | tuple):
        if holds_tensors(paddings):
            paddings = convert_to_tensor(paddings)
        elif any(isinstance(n, SymInt) for pair in paddings if isinstance(pair, list | tuple) for n in pair):
            return np.array(paddings, object)
    return static_value(paddings)


def _padded_dynamically(tensor: Any, paddings: Any, mode: str, value: Any) -> Any:
    """``tensor`` padded with one value, by paddings that are known at run time only."""
    is_constant = isinstance(mode, str) and mode.upper() == "CONSTANT"
    if not is_constant or tuple(paddings.shape) != (len(tensor.shape), 2):
        raise InvalidArgumentError(
            f"paddings known at run time only have shape ({len(tensor.shape)}, 2) and mode CONSTANT, not "
            f"{paddings!r} for {mode!r}; give them as Python ints."
        )
    ends = ints_or_symbolic(reshape(paddings, [-1]), "paddings")
    return _surrounded(tensor, tuple(zip(ends[::2], ends[1::2], strict=True)), value)


def _surrounded(tensor: Any, pairs: Any, value: Any) -> Any:
    """``tensor`` with one value around it, a number or a scalar tensor."""
    if shape_of(value):
        raise DTypeError(f"constant_values is one number, not {value!r}; pad each part with its own.")
    if not isinstance(value, TENSORS):
        absent = tensor.dtype.is_string and type(value) is int and value == 0
        value = convert_to_tensor("" if absent else value, tensor.dtype)
    static = static_value(value)
    if static is not None:
        number = static.astype(tensor.dtype.dtype).item()
        return apply_sized(PAD, (tensor,), {"paddings": pairs, "value": number})
    inside = _surrounded(ones_like(tensor, bool_), pairs, False)
    return where(inside, _surrounded(tensor, pairs, 0), stop_gradient(cast(value, tensor.dtype)))


def _mirrored(x: Any, axis: int, before: int, after: int, skip: int) -> Tensor:
    (size,) = require_static_sizes(x.shape, "pad", [axis])
    if max(before, after) > size - skip:
        raise InvalidArgumentError(
            f"axis {axis} of size {size} is too short to mirror {max(before, after)} elements."
        )
    pieces = [x]
    if before:
        pieces.insert(0, reverse(part(x, axis, skip, skip + before), axis))
    if after:
        pieces.append(reverse(part(x, axis, size - skip - after, size - skip), axis))
    return concat(pieces, axis) if len(pieces) > 1 else x


def tile(input: TensorLike, multiples: IntsLike, name: str | None = None) -> Tensor:
    """``input`` repeated along each axis.

    Args:
        input: a tensor of any shape and dtype.
        multiples: the number of repetitions for each axis, 0 or more; entries may be tensors known at run
            time only.

    Returns:
        A tensor of the dtype of ``input``; the size of each axis is multiplied by its number of repetitions.

    Raises:
        InvalidArgumentError: ``multiples`` doesn't have one number of 0 or more for each axis.
        DTypeError: ``multiples`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.tile([1, 2], [2]).numpy()
    array([1, 2, 1, 2], dtype=int32)
    """
    input = as_tensor(input)
    times = ints_or_symbolic(multiples, "multiples")
    if len(times) != len(input.shape) or any(type(t) is int and t < 0 for t in times):
        raise InvalidArgumentError(
            f"multiples {times} are not one number of 0 or more for each axis of {input.shape}."
        )
    sizes = axis_sizes(input)
    repeated = [n for t, d in zip(times, sizes, strict=True) for n in (t, d)]
    split_up = expand_dims(input, tuple(range(0, 2 * len(times), 2))) if times else input
    return reshape(broadcast_to(split_up, repeated), [t * d for t, d in zip(times, sizes, strict=True)])


def reverse(tensor: TensorLike, axis: AxisLike, name: str | None = None) -> Tensor:
    """``tensor`` with the elements along some axes in reverse order.

    Args:
        tensor: a tensor of one axis or more, of any dtype.
        axis: the axes to reverse: an integer or a list.

    Returns:
        A tensor with the shape and dtype of ``tensor``.

    Raises:
        InvalidArgumentError: an axis is out of range or occurs twice.

    >>> import dualflow as df
    >>> df.reverse([1, 2, 3], [0]).numpy()
    array([3, 2, 1], dtype=int32)
    """
    tensor = as_tensor(tensor)
    axes = normalize_axes(ints(axis, "axis"), len(tensor.shape))
    return tensor[
        tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(len(tensor.shape)))
    ]


def roll(input: TensorLike, shift: IntsLike, axis: AxisLike, name: str | None = None) -> Tensor:
    """``input`` shifted along some axes; elements that leave at one end come in at the other.

    Args:
        input: a tensor of one axis or more, of any dtype.
        shift: the number of places, an integer or one for each axis; it may be a tensor known at run time
            only.
        axis: an axis, or a list of axes.

    Returns:
        A tensor with the shape and dtype of ``input``.

    Raises:
        InvalidArgumentError: there are more or fewer shifts than axes, or an axis is out of range.
        DTypeError: ``shift`` or ``axis`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.roll([1, 2, 3, 4], 1, 0).numpy()
    array([4, 1, 2, 3], dtype=int32)
    """
    input = as_tensor(input)
    axes = [normalize_axis(a, len(input.shape)) for a in ints(axis, "axis")]
    shifts = ints_or_symbolic(shift, "shift")
    if len(shifts) != len(axes):
        raise InvalidArgumentError(f"roll takes a shift for each axis, not {len(shifts)} for {len(axes)}.")
    for indices, at in zip(shifts, axes, strict=True):
        size = input.shape[at]
        if size is None or not isinstance(indices, int):
            input = _rolled(input, indices, at)
        elif size and indices % size:
            cut = -indices % size
            input = concat([part(input, at, cut, size), part(input, at, 0, cut)], at)
    return input


def _rolled(x: Any, indices: Any, axis: int) -> Tensor:
    """:func:`roll` by a number of positions, or along an axis whose size is known at run time only."""
    size = sizes_of(x, int64)[axis]
    period = maximum(size, 1)
    shift = indices if getattr(indices, "dtype", None) is uint64 else cast(indices, int64)
    shift = cast(mod(shift, cast(period, shift.dtype)), int64)  # so that the difference can't overflow
    index = count_up(size) - shift
    return gather(x, where(index < 0, index + period, index), axis=axis)  # a division takes longer


def repeat(
    input: TensorLike, repeats: TensorLike, axis: AxisLike | None = None, name: str | None = None
) -> Tensor:
    """Each element of ``input``, or each slice along ``axis``, repeated in place.

    Args:
        input: a tensor of any dtype.
        repeats: the number of repetitions, 0 or more: one for all slices, or one for each.
        axis: the axis of the slices; None to flatten ``input`` first.

    Returns:
        A tensor of the dtype of ``input``, whose size on ``axis`` is the sum of the repetitions.

    Raises:
        InvalidArgumentError: ``repeats`` doesn't have one number, or one for each slice; or one is negative.
        DTypeError: ``repeats`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.repeat([1, 2], [3, 1]).numpy().tolist()
    [1, 1, 1, 2]
    """
    x = as_tensor(input)
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    at = normalize_axis(static_int(axis, "axis"), len(x.shape))
    size = x.shape[at]
    if size is None or (isinstance(repeats, TENSORS) and static_value(repeats) is None):
        if type(repeats) is int and 0 <= repeats <= MOST_BROADCAST:
            return _repeated(x, repeats, at)
        each = broadcast_to(repeats, [axis_size(x, at)])
        return gather(x, dispatch.current().apply(REPEATED, (each,), {}), axis=at)
    counts = ints(repeats, "repeats")
    if len(counts) not in (1, size) or min(counts, default=0) < 0:
        raise InvalidArgumentError(
            f"repeats {repeats} are not one number of 0 or more for each of {size} slices."
        )
    if sum(counts) * (size if len(counts) == 1 else 1) > MAX_ELEMENTS:  # np.repeat overflows
        raise InvalidArgumentError(TOO_OFTEN)
    return gather(x, np.repeat(np.arange(size), counts), axis=at)


def _repeated(x: Any, count: int, axis: int) -> Tensor:
    """:func:`repeat` by one number along an axis whose size is known at run time only."""
    before, size, after = (sizes := axis_sizes(x))[:axis], sizes[axis], sizes[axis + 1 :]
    repeated = broadcast_to(expand_dims(x, axis + 1), [*before, size, count, *after])
    return reshape(repeated, [*before, size * count, *after])
