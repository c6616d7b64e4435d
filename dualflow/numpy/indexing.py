"""Elements picked by their places, and places of elements."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.operands import agreed, flat, has_axes, refuse, tensor, to
from dualflow.numpy.reductions import sum
from dualflow.ops import sorting
from dualflow.ops.arithmetic import floordiv, maximum, minimum, mod
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, logical_and
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.creation import zeros as filled_with_zeros
from dualflow.ops.joining import stack as stacked
from dualflow.ops.joining import unstack
from dualflow.ops.masking import boolean_mask
from dualflow.ops.positions import range as counted
from dualflow.ops.reduction import reduce_all
from dualflow.ops.selection import where as picked
from dualflow.ops.static import ints, static_int
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Tensor

_MODES = ("raise", "wrap", "clip")


def _inside(indices: Any, size: Any, mode: str) -> Any:
    """Indices as ``mode`` has those outside of the axis; "raise" counts negative ones from the end.

    Raises:
        InvalidArgumentError: another ``mode``.
    """
    if mode not in _MODES:
        raise InvalidArgumentError(f"mode is one of {', '.join(_MODES)}, not {mode!r}.")
    if mode == "wrap":
        return mod(indices, size)
    if mode == "clip":
        return minimum(maximum(indices, 0), size - 1)
    return picked(indices < 0, indices + size, indices)


def _places(indices: Any) -> Any:
    """Indices as int64: those of an empty list are floats otherwise."""
    places = tensor(indices)
    return to(places, np.int64) if places.dtype.kind != "i" or places.dtype.size < 4 else places


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Tensor:
    """The elements at ``indices`` along ``axis``; among all elements by default.

    Raises:
        OutOfRangeError: an index is outside of the axis, and ``mode`` is "raise".

    >>> import dualflow as df
    >>> df.numpy.take([10, 20, 30], [-1, 4], mode="wrap").numpy()
    array([30, 20])
    """
    refuse("take", out=out)
    x = flat(tensor(a)) if axis is None else tensor(a)
    where = 0 if axis is None else normalize_axis(axis, len(x.shape))
    return gather(x, _inside(_places(indices), operands.sizes(x)[where], mode), axis=where)


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Tensor:
    """For each row along ``axis`` the elements at that row's indices; the other axes broadcast.

    >>> import dualflow as df
    >>> df.numpy.take_along_axis([[3, 1], [5, 9]], [[1], [0]], axis=1).numpy().tolist()
    [[1], [5]]
    """
    x, places = tensor(arr), _places(indices)
    if axis is None:
        x, axis = flat(x), 0
    where = normalize_axis(axis, len(x.shape))
    if len(places.shape) != len(x.shape):
        raise InvalidArgumentError(
            "take_along_axis takes indices of as many axes as the elements have, not of shape "
            f"{places.shape} for {x.shape}."
        )
    places = _inside(places, operands.sizes(x)[where], "raise")
    sizes, index_sizes = list(x.shape), list(places.shape)
    if builtins.any(
        m != n and 1 in (m, n) for i, (m, n) in enumerate(zip(sizes, index_sizes, strict=True)) if i != where
    ):
        target = [builtins.max(m, n) for m, n in zip(sizes, index_sizes, strict=True)]
        x = broadcast_to(x, [*target[:where], sizes[where], *target[where + 1 :]])
        places = broadcast_to(places, [*target[:where], index_sizes[where], *target[where + 1 :]])
    return sorting.take_along_axis(x, places, where)


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Tensor:
    """In each place the element of the choice whose number stands there; all broadcast.

    >>> import dualflow as df
    >>> df.numpy.choose([0, 1, 0], [[1, 2, 3], 9]).numpy()
    array([1, 9, 3])
    """
    refuse("choose", out=out)
    options = operands.broadcast_together(
        *agreed(*(choices if isinstance(choices, list | tuple) else unstack(tensor(choices))))
    )
    which = _inside(_places(a), len(options), mode)
    if mode == "raise":
        ok = reduce_all(logical_and(which >= 0, which < len(options)))
        which = required(which, ok, f"choose has {len(options)} choices, and a number is none of theirs.")
    which, *options = operands.broadcast_together(which, *options)
    return take_along_axis(stacked(options), expand_dims(which, 0), 0)[0]


def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Tensor:
    """The parts along ``axis`` for which ``condition`` holds; of all elements by default."""
    refuse("compress", out=out)
    x = flat(tensor(a)) if axis is None else tensor(a)
    where = 0 if axis is None else normalize_axis(axis, len(x.shape))
    mask = to(tensor(condition), bool)
    return boolean_mask(x[(*[slice(None)] * where, slice(None, mask.shape[0]))], mask, where)


def extract(condition: Any, arr: Any) -> Tensor:
    """The elements where ``condition`` holds (is not 0), in one axis."""
    return boolean_mask(flat(tensor(arr)), flat(to(tensor(condition), bool)))


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """``x`` where ``condition`` holds (is not 0), ``y`` elsewhere; without both, :func:`nonzero`.

    >>> import dualflow as df
    >>> df.numpy.where([True, False], [1, 2], 0.5).numpy()
    array([1. , 0.5])
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise InvalidArgumentError("where takes both x and y, or neither for the places of true elements.")
    left, right = agreed(x, y)
    return picked(to(tensor(condition), bool), left, right)


def nonzero(a: Any) -> tuple[Tensor, ...]:
    """Where the elements are not 0: for each axis, their places along it.

    >>> import dualflow as df
    >>> [places.numpy().tolist() for places in df.numpy.nonzero([[0, 5], [7, 0]])]
    [[0, 1], [1, 0]]
    """
    x = tensor(a)
    if not x.shape:
        raise InvalidArgumentError(
            "nonzero takes a tensor of one axis or more; use atleast_1d, or reshape it to (1,)."
        )
    places = argwhere(x)
    return tuple(places[:, i] for i in range(len(x.shape)))


def argwhere(a: Any) -> Tensor:
    """Where the elements are not 0: one row of places each."""
    return picked(to(tensor(a), bool))


def flatnonzero(a: Any) -> Tensor:
    """Where the elements are not 0, counted through all axes."""
    return argwhere(flat(tensor(a)))[:, 0]


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """In each place the element of the first choice whose condition holds there, or ``default``.

    >>> import dualflow as df
    >>> x = df.numpy.arange(4)
    >>> df.numpy.select([x < 1, x < 3], [x, x * 10], 42).numpy()
    array([ 0, 10, 20, 42])
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise InvalidArgumentError(
            f"select takes as many conditions as choices, and one at least, not {len(condlist)} and "
            f"{len(choicelist)}."
        )
    *choices, selected = agreed(*choicelist, default)
    for condition, value in zip(reversed(list(condlist)), reversed(choices), strict=True):
        selected = picked(tensor(condition), value, selected)
    return selected


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """In each place what the function (or number) of the last condition that holds there gives.

    The functions are given all of ``x``, and where a condition doesn't hold what they give is not used. One
    more function than conditions is for what is left, by default 0.

    >>> import dualflow as df
    >>> df.numpy.piecewise([-2.0, 3.0], [[True, False]], [abs, lambda v: v * v]).numpy()
    array([2., 9.])
    """
    v = tensor(x)
    conditions = condlist if isinstance(condlist, list | tuple) else unstack(tensor(condlist))
    if not len(conditions) or (
        not (isinstance(conditions[0], list | tuple) or has_axes(conditions[0])) and v.shape
    ):
        conditions = [conditions]
    tests = [to(tensor(c), bool) for c in conditions]
    if len(funclist) not in (len(tests), len(tests) + 1):
        raise InvalidArgumentError(
            f"piecewise takes as many functions as conditions, or one more, not {len(funclist)} for "
            f"{len(tests)}."
        )
    default = funclist[-1] if len(funclist) > len(tests) else 0

    def value(function: Any) -> Any:
        return to(tensor(function(v, *args, **kw) if callable(function) else function), v.dtype)

    result = (
        broadcast_to(value(default), tuple(v.shape)) if v.shape.is_static else value(default) + zeros_like(v)
    )
    for test, function in zip(tests, funclist, strict=False):
        result = picked(test, value(function), result)
    return result


# Grids of indices


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Vectors of indices, each along an axis of its own, that pick the rows, columns, ... they name."""
    grid = []
    for i, vector in enumerate(args):
        x = tensor(vector)
        if len(x.shape) != 1:
            raise InvalidArgumentError(f"ix_ takes vectors, not shape {x.shape}.")
        places = flatnonzero(x) if x.dtype.is_bool else to(x, np.int64) if not x.shape[0] else x
        grid.append(reshape(places, [-1 if axis == i else 1 for axis in range(len(args))]))
    return tuple(grid)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """For places counted through all axes of ``shape``, those along each axis.

    Raises:
        InvalidArgumentError: a place is outside of the shape, or ``order`` is neither "C" nor "F".
    """
    sizes = ints(shape, "shape")
    places = _places(indices)
    total = int(np.prod(sizes))
    ok = reduce_all(logical_and(places >= 0, places < total))
    places = required(places, ok, f"An index is outside of shape {sizes}.")
    along_axes = []
    for size in reversed(sizes) if _order(order) == "C" else sizes:
        along_axes.append(mod(places, builtins.max(size, 1)))
        places = floordiv(places, builtins.max(size, 1))
    return tuple(reversed(along_axes)) if order == "C" else tuple(along_axes)


def _order(order: str) -> str:
    if order not in ("C", "F"):
        raise InvalidArgumentError(f"order is 'C' or 'F', not {order!r}.")
    return order


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Tensor:
    """For places along each axis, those counted through all axes of ``dims``."""
    sizes = ints(dims, "dims")
    modes = mode if isinstance(mode, tuple) else (mode,) * len(sizes)
    parts = list(multi_index) if isinstance(multi_index, list | tuple) else unstack(tensor(multi_index))
    steps = np.cumprod((1, *(sizes[:0:-1] if _order(order) == "C" else sizes[:-1])))
    flat_index: Any = 0
    for part, size, how, step in zip(
        parts, sizes, modes, steps[::-1] if order == "C" else steps, strict=True
    ):
        places = _places(part)
        if how == "raise":
            ok = reduce_all(logical_and(places >= 0, places < size))
            places = required(places, ok, f"An index is outside of an axis of size {size}.")
        flat_index = flat_index + (places if how == "raise" else _inside(places, size, how)) * int(step)
    return tensor(flat_index)


def diag_indices(n: Any, ndim: Any = 2) -> tuple[Tensor, ...]:
    """The places of the main diagonal of a tensor of ``ndim`` axes of size ``n``."""
    return (convert_to_tensor(np.arange(static_int(n, "n"))),) * static_int(ndim, "ndim")


def diag_indices_from(arr: Any) -> tuple[Tensor, ...]:
    """The places of the main diagonal of ``arr``, whose axes have one size."""
    shape = tensor(arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise InvalidArgumentError(f"A diagonal is of two or more axes of one size, not of shape {shape}.")
    return diag_indices(shape[0], len(shape))


def _constants(arrays: Any) -> tuple[Tensor, ...]:
    return tuple(convert_to_tensor(x) for x in arrays)


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Tensor, ...]:
    """The rows and columns on and below the diagonal ``k`` of a matrix of ``n`` rows and ``m`` columns."""
    return _constants(np.tril_indices(static_int(n, "n"), static_int(k, "k"), m))


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Tensor, ...]:
    """The rows and columns on and above the diagonal ``k`` of a matrix of ``n`` rows and ``m`` columns."""
    return _constants(np.triu_indices(static_int(n, "n"), static_int(k, "k"), m))


def _of_matrix(arr: Any) -> Any:
    shape = tensor(arr).shape
    if len(shape) != 2:
        raise InvalidArgumentError(f"A matrix is required, not shape {shape}.")
    return shape


def tril_indices_from(arr: Any, k: Any = 0) -> tuple[Tensor, ...]:
    """The rows and columns on and below the diagonal ``k`` of the matrix ``arr``."""
    rows, columns = _of_matrix(arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: Any = 0) -> tuple[Tensor, ...]:
    """The rows and columns on and above the diagonal ``k`` of the matrix ``arr``."""
    rows, columns = _of_matrix(arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: Any, mask_func: Callable[..., Any], k: Any = 0) -> tuple[Tensor, ...]:
    """Where ``mask_func`` leaves the ones of a matrix of ``n`` rows."""
    return nonzero(mask_func(convert_to_tensor(np.ones((n, n), np.int64)), k))


# Diagonals and triangles


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal ``offset`` of the matrices of two axes, along the last axis.

    >>> import dualflow as df
    >>> df.numpy.diagonal([[1, 2], [3, 4]], offset=1).numpy()
    array([2])
    """
    x = tensor(a)
    rank = len(x.shape)
    if rank < 2:
        raise InvalidArgumentError(
            f"The diagonals are those of matrices: of two axes or more, not of shape {x.shape}."
        )
    i, j = normalize_axis(axis1, rank), normalize_axis(axis2, rank)
    if i == j:
        raise InvalidArgumentError(f"diagonal's two axes are not one: {axis1} and {axis2}.")
    other_axes = [axis for axis in range(rank) if axis not in (i, j)]
    x = transpose(x, [*other_axes, i, j])
    rows, columns = (static_int(size, "a size of the matrices") for size in x.shape[-2:])
    count = builtins.max(
        0, builtins.min(rows, columns - offset) if offset >= 0 else builtins.min(rows + offset, columns)
    )
    start = offset if offset >= 0 else -offset * columns
    flattened = reshape(x, [*operands.sizes(x)[:-2], rows * columns])
    return flattened[..., start : start + count * (columns + 1) : columns + 1][..., :count]


def diag(v: Any, k: int = 0) -> Tensor:
    """A vector as the diagonal ``k`` of a matrix of zeros; of a matrix, its diagonal.

    >>> import dualflow as df
    >>> df.numpy.diag([1, 2]).numpy().tolist(), df.numpy.diag([[1, 2], [3, 4]]).numpy().tolist()
    ([[1, 0], [0, 2]], [1, 4])
    """
    x = tensor(v)
    if len(x.shape) == 2:
        return diagonal(x, k)
    if len(x.shape) != 1:
        raise InvalidArgumentError(f"diag takes a vector or a matrix, not shape {x.shape}.")
    count = static_int(x.shape[0], "the size of the vector")
    side = count + builtins.abs(k)
    if not count:
        return filled_with_zeros([side, side], x.dtype)
    rows = np.arange(side)[:, None]
    columns = np.arange(side)[None, :]
    places = np.clip(rows + builtins.min(k, 0), 0, count - 1)[:, 0]
    return picked(convert_to_tensor(columns - rows == k), gather(x, places)[:, None], zeros_like(x)[:1])


def diagflat(v: Any, k: int = 0) -> Tensor:
    """The elements, in one axis, as the diagonal ``k`` of a matrix of zeros."""
    return diag(flat(tensor(v)), k)


def _triangle(m: Any, keep: Callable[[Any, Any], Any]) -> Tensor:
    x = tensor(m)
    if not x.shape:
        raise InvalidArgumentError("A triangle is of one axis or more, not of a number.")
    if len(x.shape) == 1:
        x = broadcast_to(x, [x.shape[0], x.shape[0]])
    rows, columns = operands.sizes(x)[-2:]
    return picked(keep(_counted(rows)[:, None], _counted(columns)), x, zeros_like(x))


def _counted(size: Any) -> Any:
    from_zero = convert_to_tensor(np.arange(size)) if isinstance(size, int) else None
    return from_zero if from_zero is not None else counted(0, size, 1, size.dtype)


def tril(m: Any, k: int = 0) -> Tensor:
    """The matrices with zeros above the diagonal ``k``."""
    return _triangle(m, lambda row, column: column - row <= k)


def triu(m: Any, k: int = 0) -> Tensor:
    """The matrices with zeros below the diagonal ``k``."""
    return _triangle(m, lambda row, column: column - row >= k)


def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Tensor:
    """The sum of the diagonal ``offset`` of the matrices of two axes."""
    refuse("trace", out=out)
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> Tensor:
    """``arr`` with ``values`` at each row's indices along ``axis``: a new tensor, as tensors don't change."""
    x = tensor(arr)
    shape = operands.sizes(x)
    if axis is None:
        x, axis = flat(x), 0
    where = normalize_axis(axis, len(x.shape))
    places = _inside(_places(indices), operands.sizes(x)[where], "raise")
    size = static_int(x.shape[where], "the size of the axis")
    # for each place of the row, which of the values is put there last
    hits = equal(
        expand_dims(places, where + 1),
        reshape(tensor(np.arange(size)), [size, *[1] * (len(x.shape) - where - 1)]),
    )
    new = (
        broadcast_to(tensor(values, x.dtype), tuple(places.shape))
        if places.shape.is_static
        else tensor(values, x.dtype)
    )
    for i in range(static_int(places.shape[where], "the number of indices")):
        front = (slice(None),) * where
        x = picked(hits[(*front, i)], new[(*front, slice(i, i + 1))], x)
    return reshape(x, shape)


make_entries(globals())
