"""``x[...]``: views by integers, slices, ``...`` and new axes, assignments to their parts, and masks."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import Dim, Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import hide_frames
from dualflow.ops.advanced_indexing import as_indices, mask_indices, pick
from dualflow.ops.arithmetic import add
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.assembly import assembling
from dualflow.ops.batching_rules import BatchingRule
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.masking import boolean_mask
from dualflow.ops.op_kinds import CopyPieces, OperandAttributes, SizeReader, View
from dualflow.ops.operand_attributes import OperandInteger, apply_sized, has_operands
from dualflow.ops.record import Op, Promotion, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.selection import where
from dualflow.ops.static import dtype_of, shape_of, static_int, static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_sizes
from dualflow.sizes.size_functions import (
    compared_slice_bounds,
    largest,
    slice_bounds,
    symbolic_slice_bounds,
)
from dualflow.sizes.symbolic_sizes import SymInt, UndecidedSize, is_static

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

Entry = int | None | tuple[int | None, int | None, int | None]
"""An index of one axis (an int), a slice (start, stop, step), or a new axis (None)."""
Key = tuple[Entry, ...]
_ALL: Final[Entry] = (None, None, None)


def _as_index(key: Key) -> tuple[Any, ...]:
    """The key for NumPy; the ``...`` makes even a single element a view."""
    return (*[slice(*entry) if type(entry) is tuple else entry for entry in key], Ellipsis)


def _slice_size(dim: Dim, entry: tuple[int | None, int | None, int | None]) -> Dim:
    if OperandInteger in map(type, entry):
        return None
    if type(dim) is int and not any(type(end) is SymInt for end in entry):
        return len(range(*slice(*entry).indices(dim)))
    start, stop, step = entry
    return None if dim is None else symbolic_slice_bounds(start, stop, step or 1, dim)[1]


def _shape_with(shape: Sequence[int], key: Key) -> list[int]:
    """``shape`` with each symbolic size raised to the least size for which ``key`` is in range."""
    sizes, dims = [], iter(shape)
    for entry in key:
        if entry is not None:
            size = next(dims)
            least = 0 if isinstance(entry, tuple) else entry + 1 if entry >= 0 else -entry
            sizes.append(largest(size, least) if isinstance(size, SymInt) else size)
    return [*sizes, *dims]


def _getitem_infer(x: TensorSpec, key: Key) -> TensorSpec:
    _check_slices(key, x.rank)
    dims = iter(x.shape)
    sizes: list[Dim] = []
    for entry in key:
        if entry is None:
            sizes.append(1)
        elif isinstance(entry, tuple):
            sizes.append(_slice_size(next(dims), entry))
        else:
            size = next(dims)
            if type(size) is int and not -size <= entry < size:  # the program checks one known at run time
                raise OutOfRangeError(
                    f"index {entry} is out of range for an axis of size {size}; check the arguments' sizes."
                )
    return TensorSpec.of(Shape([*sizes, *dims]), x.dtype)


_X = (Domain(-50, 50, "fib", (4, 5, 6)),)
_KEYS: tuple[Key, ...] = (
    (2,),
    ((1, 3, 1),),
    ((0, 4, 1), (4, None, -2), 3),
    (None, (0, 4, 3), None, (0, 5, 1), (5, 1, -1)),
    ((2, 2, 1),),
)


def _check_slices(key: Key, rank: int) -> None:
    """Refuse a key with operands that isn't one slice by a number for each axis."""
    if has_operands({"key": key}) and not (
        len(key) == rank and all(isinstance(e, tuple) and not isinstance(e[2], OperandInteger) for e in key)
    ):
        raise InvalidArgumentError(f"a key with operands has a slice for each of {rank} axes, not {key}.")


def _with_bounds(read: SizeReader, key: Any, shape: Shape) -> Key:
    """``key``, a slice for each axis, with bounds inside of axes of the sizes ``shape``."""
    entries: list[Entry] = []
    for (start, stop, steps), size in zip(key, shape, strict=True):
        assert size is not None, "no size is dynamic"
        step = steps or 1
        begin, count = slice_bounds(start, stop, step, size)
        (count,) = read.sizes([count])
        end = begin + count * step
        entries.append((begin, end if isinstance(end, SymInt) or end >= 0 else None, step))
    return tuple(entries)


def _getitem_resolved(read: SizeReader, x: Any, key: Key) -> Any:
    return dispatch.current().apply(GETITEM, (x,), {"key": _with_bounds(read, key, x.shape)})


GETITEM = register(
    Op(
        name="getitem",
        doc="""``x[key]`` for integers, slices and new axes.""",
        infer=_getitem_infer,
        kernel=lambda x, key: x[_as_index(key)],
        kind=View(lambda x, key: x[_as_index(key)]),
        required_shapes=lambda x, key: [_shape_with(x, key)],
        batching_rule=BatchingRule(first={"key": _ALL}),
        vjp=(lambda g, out, x, key: _place(g, x, key),),
        operand_attributes=OperandAttributes(bounds=("key",), resolve=_getitem_resolved),
        samples=tuple(Sample(_X, {"key": key}) for key in _KEYS),
    )
)


def _place_infer(g: TensorSpec, key: Key, shape: Shape) -> TensorSpec:
    _check_slices(key, len(shape))
    return TensorSpec.of(Shape(shape), g.dtype)


def _place_pieces(out: Any, g: Any, key: Key, shape: Shape) -> list[tuple[Any, Any]]:
    return [(out, 0), (out[_as_index(key)], g)]


def _place_resolved(read: SizeReader, g: Any, key: Key, shape: Shape) -> Any:
    bounded = _with_bounds(read, key, shape)
    target = part_shape(TensorSpec.of(shape, g.dtype), bounded)
    fitting = read.require_shape(g, target, "a part of shape {0} does not fill the part of shape {1}")
    return dispatch.current().apply(PLACE, (fitting,), {"key": bounded, "shape": shape})


PLACE = register(
    Op(
        name="place",
        doc="""Zeros of shape ``shape`` whose part ``[key]`` is ``x``.""",
        infer=_place_infer,
        kernel=assembling(_place_infer, _place_pieces),
        kind=CopyPieces(_place_pieces),
        batching_rule=BatchingRule(sizes=("shape",), first={"key": _ALL}),
        vjp=(lambda g, out, x, key, shape: apply_sized(GETITEM, (g,), {"key": key}),),
        operand_attributes=OperandAttributes(("shape",), ("key",), _place_resolved),
        samples=(
            Sample((Domain(-50, 50, "fi", (2, 5)),), {"key": ((1, 3, 1),), "shape": Shape((4, 5))}),
            Sample((Domain(-50, 50, "fi", (3,)),), {"key": (1, (4, None, -2)), "shape": Shape((2, 5))}),
        ),
    )
)


def _place(g: Any, x: Any, key: Key) -> Any:
    if any(isinstance(end, AbstractTensor) for entry in key if type(entry) is tuple for end in entry):
        return apply_sized(PLACE, (g,), {"key": key, "shape": axis_sizes(x)})
    if not x.shape.is_static:
        return _replace(zeros_like(x), g, key)
    return dispatch.current().apply(PLACE, (g,), {"key": key, "shape": x.shape})


def part_shape(x: TensorSpec, key: Key) -> Shape:
    """The shape of ``x[key]``."""
    return _getitem_infer(x, key).shape


def _replace_infer(x: TensorSpec, part: TensorSpec, key: Key) -> TensorSpec:
    shape = part_shape(x, key)
    if not broadcast([shape, part.shape]).is_compatible_with(shape):
        raise InvalidArgumentError(
            f"a value of shape {part.shape} does not broadcast to the part's shape {shape}; reshape it first."
        )
    return x


def _replace_pieces(out: Any, x: Any, part: Any, key: Key) -> list[tuple[Any, Any]]:
    target = out[_as_index(key)]
    return [(out, x), (target, np.broadcast_to(part, target.shape))]


REPLACE = register(
    Op(
        name="replace",
        doc="""A copy of ``x`` whose part ``x[key]`` is ``part``.""",
        infer=_replace_infer,
        required_shapes=lambda x, part, key: [_shape_with(x, key), part],
        kernel=assembling(_replace_infer, _replace_pieces),
        kind=CopyPieces(_replace_pieces),
        batching_rule=BatchingRule(first={"key": _ALL}),
        vjp=(
            lambda g, out, x, part, key: _replace(g, np.zeros((), g.dtype.dtype), key),
            lambda g, out, x, part, key: dispatch.current().apply(GETITEM, (g,), {"key": key}),
        ),
        promotion=Promotion.TOGETHER,
        samples=(
            Sample((*_X, Domain(-50, 50, "fib", (2, 5, 6))), {"key": ((1, 3, 1),)}),
            Sample((*_X, Domain(-50, 50, "fib", (1, 6))), {"key": (2,)}),
        ),
    )
)


def _replace(x: Any, part: Any, key: Key) -> Any:
    return dispatch.current().apply(REPLACE, (x, part), {"key": key})


def replace(x: Any, key: Any, part: Any) -> Any:
    """A copy of ``x`` after ``x[key] = part``; ``part`` broadcasts to the shape of ``x[key]``.

    ``key`` consists of integers, slices, ``...`` and ``None``.

    Raises:
        InvalidArgumentError: ``part`` does not broadcast to ``x[key]``.
        DTypeError: an index of another kind, or one that is symbolic.
    """
    entries, dynamic = _canonical(_expanded(key, shape_of(x)), shape_of(x))
    if dynamic:
        raise DTypeError(
            "A part is replaced at slices and integers known while tracing, not at "
            f"{dynamic[0][1]!r}; use scatter_nd_update."
        )
    return _replace(x, part, entries)


def getitem(x: Any, key: Any) -> Tensor:
    """``x[key]`` as NumPy's: integers, slices, ``...``, ``None`` (a new axis), arrays of integers, and masks.

    Slices are clamped to the axis, as in Python; integers are not. Arrays, tensors and lists of integers pick
    along their axis; several of them broadcast and pick points. A list is an array too, where TensorFlow
    reads it as a tuple; with a slice in it, it is a tuple here as well. A tuple in the tuple of indices is an
    array, too. A mask picks where it holds.

    Raises:
        OutOfRangeError: an integer is outside its axis.
        InvalidArgumentError: more indices than axes, or arrays that do not broadcast.
        DTypeError: an index of another kind.

    >>> import dualflow as df
    >>> x = df.constant([[1, 2, 3], [4, 5, 6]])
    >>> x[:, ::-1].numpy().tolist(), x[:, [2, 0]].numpy().tolist(), x[x > 4].numpy().tolist()
    ([[3, 2, 1], [6, 5, 4]], [[3, 1], [6, 4]], [5, 6])
    """
    try:
        return dispatch.current().part(_item, x, key)
    except Exception as error:
        hide_frames(error)
        raise


def is_plain(key: Any) -> bool:
    """Whether ``key`` consists of ints, slices of ints, ``...`` and None, which NumPy reads the same way."""
    kind = type(key)
    if kind is slice:
        return (
            (type(key.stop) is int or key.stop is None)
            and (type(key.start) is int or key.start is None)
            and (key.step is None or type(key.step) is int)
        )
    if kind is tuple:
        for item in key:
            if not (type(item) is int or item is None or (type(item) in _PLAIN and is_plain(item))):
                return False
        return True
    return kind in _PLAIN


def _item(x: Any, key: Any) -> Any:
    shape = shape_of(x)
    if type(key) is list and any(type(item) in _VIEWS for item in key):
        key = tuple(key)
    if is_plain(key):
        entries, _ = _canonical(_expanded(key, shape), shape)
        return dispatch.current().apply(GETITEM, (x,), {"key": entries})
    if _is_mask(key):
        return _masked(x, key)
    items = _expanded(key, shape)
    if not dispatch.current().eager and any(isinstance(i, slice) and _has_dynamic_bound(i) for i in items):
        x, items = _slice_dynamically(x, items)
        shape = shape_of(x)
        if all(
            isinstance(item, slice) and not any(p is not None for p in _start_stop_step(item))
            for item in items
        ):
            return x
    entries, dynamic = _canonical(items, shape)
    is_whole = dynamic and entries == tuple((0, size, 1) for size in shape)
    part = x if is_whole else dispatch.current().apply(GETITEM, (x,), {"key": entries})
    if len(dynamic) == 1 and not len(shape_of(dynamic[0][1])):
        axis, index = dynamic[0]
        size = shape_of(part)[axis]
        if size is not None:
            return gather(part, where(index < 0, add(index, size), index), axis=axis)
    return pick(convert_to_tensor(part), dynamic, _gathered_axis(items, key)) if dynamic else part


def _is_mask(key: Any) -> bool:
    if isinstance(key, AbstractTensor | AbstractVariable | np.ndarray):
        return dtype_of(key).kind == "b"
    if isinstance(key, list):
        return dtype_of(as_indices(key)).is_bool
    return key is True or key is False or isinstance(key, np.bool_)


def _masked(x: Any, mask: Any) -> Any:
    """``x[mask]``; one bool makes a first axis of one row or none."""
    if not len(shape_of(mask)):
        x, mask = expand_dims(x, 0), reshape(mask, [1])
    sizes = shape_of(x)[: len(shape_of(mask))]
    if dispatch.current().eager or static_value(mask) is None or None in sizes:
        return boolean_mask(x, mask)
    return pick(convert_to_tensor(x), list(enumerate(mask_indices(mask, shape_of(x)))), 0)


def _has_dynamic_bound(item: slice) -> bool:
    """Whether a bound of a slice is known at run time only."""
    ends = (item.start, item.stop)
    return any(isinstance(p, AbstractTensor | AbstractVariable) and static_value(p) is None for p in ends)


def _slice_dynamically(x: Any, items: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """``x`` after its slices with symbolic bounds, and the items with full slices instead of these."""
    left = list(items)
    key: list[Any] = []
    for i, item in enumerate(items):
        if isinstance(item, slice) and _has_dynamic_bound(item):
            step = 1 if item.step is None else static_int(item.step, "a slice's step")
            if not step:
                raise InvalidArgumentError("a slice's step can't be 0; leave it out for every element.")
            key.append((_checked_bound(item.start), _checked_bound(item.stop), step))
            left[i] = slice(None)
        elif item is not None:
            key.append(_ALL)
    return apply_sized(GETITEM, (x,), {"key": key}), tuple(left)


def _checked_bound(end: Any) -> Any:
    """A bound of a slice, checked to be an integer or None."""
    if end is not None and (len(shape_of(end)) or not dtype_of(end).is_integer):
        raise DTypeError(f"a slice's bound is an integer, not {end!r}; cast it with df.cast.")
    return end


_VIEWS: Final = frozenset({slice, type(None), type(Ellipsis)})
_PLAIN: Final = _VIEWS | {int}


def _expanded(key: Any, shape: Shape) -> tuple[Any, ...]:
    """``key`` with one entry for each axis and new axis: ``...`` is expanded, masks become integers."""
    items = key if isinstance(key, tuple) else (key,)
    if not all(type(item) in _PLAIN or _is_scalar(item) for item in items):
        items = tuple(_indices_of(items, shape))
    ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
    used = len([item for item in items if item is not None and item is not Ellipsis])
    if len(ellipses) > 1 or used > len(shape):
        raise InvalidArgumentError(
            f"{used} indices and {len(ellipses)} ellipses do not fit a tensor of shape {shape}: "
            "give at most one index an axis and one '...'."
        )
    at = ellipses[0] if ellipses else len(items)
    return (*items[:at], *[slice(None)] * (len(shape) - used), *items[at + 1 :])


def _is_scalar(item: Any) -> bool:
    return isinstance(item, AbstractTensor) and not item.shape and item.dtype.is_integer


def _indices_of(items: tuple[Any, ...], shape: Shape) -> Iterator[Any]:
    """``items`` with lists as arrays, and masks as the integer indices of their true elements."""
    arrays = [None if type(item) in _PLAIN else as_indices(item) for item in items]
    ranks = [len(shape_of(x)) if x is not None and dtype_of(x).is_bool else 1 for x in arrays]
    used = sum(
        rank for item, rank in zip(items, ranks, strict=True) if item is not None and item is not Ellipsis
    )
    axis = 0
    for item, indices, rank in zip(items, arrays, ranks, strict=True):
        if indices is not None and dtype_of(indices).is_bool:
            yield from mask_indices(indices, shape[axis:])
        else:
            yield item if indices is None else indices
        axis += len(shape) - used if item is Ellipsis else 0 if item is None else rank


def _gathered_axis(items: tuple[Any, ...], key: Any) -> int:
    """The first axis of gathered elements in the result: that of the indices if they are adjacent, else 0."""
    picked = [i for i, item in enumerate(items) if not isinstance(item, slice | None)]
    is_view = [
        isinstance(i, slice | None) or i is Ellipsis for i in (key if isinstance(key, tuple) else (key,))
    ]
    between = is_view[is_view.index(False) : len(is_view) - is_view[::-1].index(False)]
    return 0 if any(between) else picked[0]


def _canonical(items: tuple[Any, ...], shape: Shape) -> tuple[Key, list[tuple[int, Any]]]:
    """Canonical slices or ints, one for each axis, and the gathers to apply along axes of the result."""
    entries: list[Entry] = []
    dynamic: list[tuple[int, Any]] = []
    axis, position = 0, 0
    for item in items:
        if item is None:
            entries.append(None)
            position += 1
            continue
        entry = _entry(item, axis, shape)
        if entry is None:
            dynamic.append((position, item))
            entry = _slice(slice(None), shape[axis])
        entries.append(entry)
        axis += 1
        position += type(entry) is tuple
    return tuple(entries), dynamic


def _entry(item: Any, axis: int, shape: Shape) -> Entry:
    """One index in canonical form; None for an array and for an integer that is symbolic."""
    if isinstance(item, slice):
        return _slice(item, shape[axis])
    if type(item) is not int:
        if isinstance(item, AbstractTensor | AbstractVariable | np.ndarray):
            value = None if len(shape_of(item)) else static_value(item)
            if value is None:
                return None
            item = value.item()
        if not hasattr(item, "__index__"):
            raise DTypeError(
                f"{item!r} is no index: use ints, slices, '...', None, integers in an array, a tensor or a "
                "list, or a bool mask."
            )
        item = operator.index(item)
    index, size = int(item), shape[axis]
    if size is None:
        return index
    if not -size <= index < size:
        raise OutOfRangeError(
            f"index {index} is out of range for axis {axis} of shape {shape}, which has size {size}."
        )
    return index + size if index < 0 else index


def _slice(item: slice, size: Dim) -> tuple[int | None, int | None, int | None]:
    start, stop, step = (
        None if p is None else static_int(p, "a slice's bound") for p in _start_stop_step(item)
    )
    if step == 0:
        raise InvalidArgumentError("a slice's step can't be 0; leave it out for every element.")
    if size is None:
        return start, stop, step
    if not is_static(n for n in (start, stop, size) if n is not None):
        return _symbolic_slice(start, stop, 1 if step is None else step, size)
    start, stop, step = slice(start, stop, step).indices(size)
    if not len(range(start, stop, step)):
        return 0, 0, 1
    return start, (stop if stop >= 0 else None), step


def _symbolic_slice(start: int | None, stop: int | None, step: int, size: int) -> tuple[int, int, int]:
    """The first element of a slice, its end, which is a whole number of steps away, and the step."""
    try:
        begin, count = compared_slice_bounds(start, stop, step, size)
    except UndecidedSize:
        begin, count = slice_bounds(start, stop, step, size)
    return begin, begin + count * step, step


def _start_stop_step(item: slice) -> tuple[Any, Any, Any]:
    return item.start, item.stop, item.step
