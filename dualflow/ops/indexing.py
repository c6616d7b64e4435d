"""``x[...]``: integers, slices, ``...`` and new axes, and the slots they came from in the gradient."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import Dim, Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import hide_frames
from dualflow.ops.arithmetic import add
from dualflow.ops.assembly import assembling
from dualflow.ops.choice import where
from dualflow.ops.forms import Assemble, View
from dualflow.ops.masking import boolean_mask
from dualflow.ops.record import Op, Promotion, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import dtype_of, known_value, shape_of, static_int
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

Entry = int | None | tuple[int | None, int | None, int | None]
Key = tuple[Entry, ...]


def _as_index(key: Key) -> tuple[Any, ...]:
    """The key for NumPy; the ``...`` makes even a single element a view."""
    return (*[slice(*entry) if type(entry) is tuple else entry for entry in key], Ellipsis)


def _sliced(dim: Dim, entry: tuple[int | None, int | None, int | None]) -> Dim:
    if dim is not None:
        return len(range(*slice(*entry).indices(dim)))
    return None


def _getitem_infer(x: TensorSpec, key: Key) -> TensorSpec:
    dims = iter(x.shape)
    found: list[Dim] = []
    for entry in key:
        if entry is None:
            found.append(1)
        elif type(entry) is tuple:
            found.append(_sliced(next(dims), entry))
        else:
            next(dims)
    return TensorSpec.of(Shape([*found, *dims]), x.dtype)


_X = (Domain(-50, 50, "fib", (4, 5, 6)),)
_KEYS: tuple[Key, ...] = (
    (2,),
    ((1, 3, 1),),
    ((0, 4, 1), (4, None, -2), 3),
    (None, (0, 4, 3), None, (0, 5, 1), (5, 1, -1)),
    ((2, 2, 1),),
)

GETITEM = register(
    Op(
        name="getitem",
        doc="""``x[key]`` for integers, slices and new axes.""",
        infer=_getitem_infer,
        kernel=lambda x, key: x[_as_index(key)],
        form=View(lambda x, key: x[_as_index(key)]),
        vjp=(lambda g, out, x, key: _place(g, x, key),),
        samples=tuple(Sample(_X, {"key": key}) for key in _KEYS),
    )
)


def _place_infer(g: TensorSpec, key: Key, shape: Shape) -> TensorSpec:
    return TensorSpec.of(Shape(shape), g.dtype)


def _place_pieces(out: Any, g: Any, key: Key, shape: Shape) -> list[tuple[Any, Any]]:
    return [(out, 0), (out[_as_index(key)], g)]


PLACE = register(
    Op(
        name="place",
        doc="""Zeros of shape ``shape`` whose part ``[key]`` is ``x``.""",
        infer=_place_infer,
        kernel=assembling(_place_infer, _place_pieces),
        form=Assemble(_place_pieces),
        vjp=(lambda g, out, x, key, shape: dispatch.current().apply(GETITEM, (g,), {"key": key}),),
        samples=(
            Sample((Domain(-50, 50, "fi", (2, 5)),), {"key": ((1, 3, 1),), "shape": Shape((4, 5))}),
            Sample((Domain(-50, 50, "fi", (3,)),), {"key": (1, (4, None, -2)), "shape": Shape((2, 5))}),
        ),
    )
)


def _place(g: Any, x: Any, key: Key) -> Any:
    return dispatch.current().apply(PLACE, (g,), {"key": key, "shape": x.shape})


def _replace_infer(x: TensorSpec, part: TensorSpec, key: Key) -> TensorSpec:
    place = _getitem_infer(x, key).shape
    if broadcast([place, part.shape]) != place:
        raise InvalidArgumentError(
            f"a value of shape {part.shape} does not broadcast to the part's shape {place}; reshape it first."
        )
    return x


def _replace_pieces(out: Any, x: Any, part: Any, key: Key) -> list[tuple[Any, Any]]:
    place = out[_as_index(key)]
    return [(out, x), (place, np.broadcast_to(part, place.shape))]


REPLACE = register(
    Op(
        name="replace",
        doc="""``x`` with ``part`` in the place of ``x[key]``.""",
        infer=_replace_infer,
        kernel=assembling(_replace_infer, _replace_pieces),
        form=Assemble(_replace_pieces),
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
    """``x`` with ``part``, broadcast to ``x[key]``, in its place: what ``x[key] = part`` does to an array.

    ``key`` is made of integers, slices, ``...`` and ``None``.

    Raises:
        InvalidArgumentError: ``part`` does not broadcast to ``x[key]``.
        DTypeError: an index of another kind, or one that is symbolic.
    """
    entries, dynamic = _canonical(key, shape_of(x))
    if dynamic:
        raise DTypeError(
            f"A part is replaced at integers known while tracing, not {dynamic[0][1]!r}; use "
            "scatter_nd_update."
        )
    return _replace(x, part, entries)


def getitem(x: Any, key: Any) -> Tensor:
    """``x[key]``, for integers, slices, ``...``, ``None`` (a new axis), integer tensors and a bool mask.

    Slices are clamped to the axis, as in Python; integers are not.

    Raises:
        OutOfRangeError: an integer is outside its axis.
        InvalidArgumentError: more indices than axes.
        DTypeError: an index of another kind; several rows are picked with :func:`dualflow.gather`.

    >>> import dualflow as df
    >>> df.constant([[1, 2, 3], [4, 5, 6]])[:, ::-1].numpy().tolist()
    [[3, 2, 1], [6, 5, 4]]
    """
    try:
        return _item(x, key)
    except Exception as error:
        hide_frames(error)
        raise


def _item(x: Any, key: Any) -> Any:
    if _is_mask(key):
        return boolean_mask(x, key)
    entries, dynamic = _canonical(key, shape_of(x))
    shape = shape_of(x)
    whole = dynamic and all(e == (0, size, 1) for e, size in zip(entries, shape, strict=False))
    found = x if whole else dispatch.current().apply(GETITEM, (x,), {"key": entries})
    for axis, index in reversed(dynamic):
        size = shape_of(found)[axis]
        found = gather(found, where(index < 0, add(index, size), index), axis=axis)
    return found


def _is_mask(key: Any) -> bool:
    if isinstance(key, AbstractTensor | AbstractVariable | np.ndarray):
        return dtype_of(key).kind == "b"
    return isinstance(key, list) and bool(key) and np.asarray(key).dtype.kind == "b"


def _canonical(key: Any, shape: Shape) -> tuple[Key, list[tuple[int, Any]]]:
    """The entries of ``key``, one an axis, and its symbolic integers with their axes in the result."""
    items = key if isinstance(key, tuple) else (key,)
    ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
    used = len([item for item in items if item is not None and item is not Ellipsis])
    if len(ellipses) > 1 or used > len(shape):
        raise InvalidArgumentError(
            f"{used} indices and {len(ellipses)} ellipses do not fit a tensor of shape {shape}: "
            "give at most one index an axis and one '...'."
        )
    at = ellipses[0] if ellipses else len(items)
    items = (*items[:at], *[slice(None)] * (len(shape) - used), *items[at + 1 :])
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
    """One index in canonical form; None for an integer that is symbolic."""
    if isinstance(item, slice):
        return _slice(item, shape[axis])
    if type(item) is not int:
        if isinstance(item, AbstractTensor | AbstractVariable | np.ndarray):
            item = _scalar(item)
            if item is None:
                return None
        if isinstance(item, bool | np.bool_) or not hasattr(item, "__index__"):
            raise DTypeError(
                f"{item!r} is no index: use ints, slices, '...', None, an integer scalar or a bool mask. "
                "Pick several positions with df.gather, or a mask with df.boolean_mask."
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


def _scalar(item: Any) -> Any:
    """The int that a scalar integer tensor holds; None if it is symbolic."""
    dtype = dtype_of(item)
    if len(shape_of(item)) or not dtype.is_integer:
        raise DTypeError(
            f"A tensor index is a scalar integer, not {dtype.name} of shape {shape_of(item)}. "
            "Pick several positions with df.gather."
        )
    value = known_value(item)
    return None if value is None else value.item()


def _slice(item: slice, size: Dim) -> tuple[int | None, int | None, int | None]:
    start, stop, step = (None if p is None else static_int(p, "a slice's bound") for p in _parts(item))
    if step == 0:
        raise InvalidArgumentError("a slice's step can't be 0; leave it out for every element.")
    if size is None:
        return start, stop, step
    start, stop, step = slice(start, stop, step).indices(size)
    if not len(range(start, stop, step)):
        return 0, 0, 1
    return start, (stop if stop >= 0 else None), step


def _parts(item: slice) -> tuple[Any, Any, Any]:
    return item.start, item.stop, item.step
