"""Elements selected by indices or conditions, and the indices of elements."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, has_axes, promote_together, reject_unsupported, tensor, to
from dualflow.ops import sorting
from dualflow.ops.arithmetic import maximum, minimum, mod
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, logical_and
from dualflow.ops.creation import zeros_like
from dualflow.ops.joining import stack as stack_op
from dualflow.ops.joining import unstack
from dualflow.ops.masking import boolean_mask
from dualflow.ops.reduction import reduce_all
from dualflow.ops.selection import where as where_op
from dualflow.ops.static import static_int
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike

_MODES = ("raise", "wrap", "clip")


def indices_by_mode(indices: Any, size: Any, mode: str) -> Any:
    """Indices from 0 on, from those of a function of NumPy with the argument ``mode``.

    "wrap" takes them modulo the size, and "clip" clamps them. "raise" adds the size to negative ones; the op
    that reads the indices checks their range.

    Raises:
        InvalidArgumentError: another ``mode``.
    """
    if mode not in _MODES:
        raise InvalidArgumentError(f"mode is one of {', '.join(_MODES)}, not {mode!r}.")
    if mode == "wrap":
        return mod(indices, size)
    if mode == "clip":
        return minimum(maximum(indices, 0), size - 1)
    return where_op(indices < 0, indices + size, indices)


def integer_indices(indices: Any) -> Any:
    """Indices as int64: those of an empty list are floats otherwise."""
    positions = tensor(indices)
    return to(positions, np.int64) if positions.dtype.kind != "i" or positions.dtype.size < 4 else positions


def take(
    a: TensorLike, indices: TensorLike, axis: int | None = None, out: None = None, mode: str = "raise"
) -> Tensor:
    """The elements at ``indices`` along ``axis``.

    Args:
        indices: integers of any shape.
        axis: the axis; by default ``a`` is flattened.
        mode: what to do with indices out of range: "raise"; "wrap", modulo the size; or "clip" to the ends.

    Returns:
        A tensor with the shape of ``a``, where the shape of ``indices`` replaces ``axis``, and the dtype of
        ``a``.

    Raises:
        OutOfRangeError: an index is out of range, and ``mode`` is "raise".
        InvalidArgumentError: ``mode`` is unknown.

    >>> import dualflow as df
    >>> df.numpy.take([10, 20, 30], [-1, 4], mode="wrap").numpy()
    array([30, 20])
    """
    reject_unsupported("take", out=out)
    x = flat(tensor(a)) if axis is None else tensor(a)
    positive_axis = 0 if axis is None else normalize_axis(axis, len(x.shape))
    return gather(
        x,
        indices_by_mode(integer_indices(indices), operands.sizes(x)[positive_axis], mode),
        axis=positive_axis,
    )


def take_along_axis(arr: TensorLike, indices: TensorLike, axis: int = -1) -> Tensor:
    """The elements at the indices of each row along ``axis``; the other axes broadcast.

    Args:
        indices: integers with as many axes as ``arr``.
        axis: the axis; None to flatten ``arr``.

    Returns:
        A tensor with the shape to which ``arr`` and ``indices`` broadcast, but that of ``indices`` along
        ``axis``, and the dtype of ``arr``.

    Raises:
        OutOfRangeError: an index is out of range.
        InvalidArgumentError: ``indices`` has another number of axes, or doesn't broadcast.

    >>> import dualflow as df
    >>> df.numpy.take_along_axis([[3, 1], [5, 9]], [[1], [0]], axis=1).numpy().tolist()
    [[1], [5]]
    """
    x, positions = tensor(arr), integer_indices(indices)
    if axis is None:
        x, axis = flat(x), 0
    positive_axis = normalize_axis(axis, len(x.shape))
    if len(positions.shape) != len(x.shape):
        raise InvalidArgumentError(
            "take_along_axis takes indices of as many axes as the elements have, not of shape "
            f"{positions.shape} for {x.shape}."
        )
    positions = indices_by_mode(positions, operands.sizes(x)[positive_axis], "raise")
    sizes, index_sizes = operands.sizes(x), operands.sizes(positions)
    if builtins.any(
        m != n and 1 in (m, n)
        for i, (m, n) in enumerate(zip(x.shape, positions.shape, strict=True))
        if i != positive_axis
    ):
        target = [n if type(m) is int and m == 1 else m for m, n in zip(sizes, index_sizes, strict=True)]
        x = broadcast_to(x, [*target[:positive_axis], sizes[positive_axis], *target[positive_axis + 1 :]])
        positions = broadcast_to(
            positions, [*target[:positive_axis], index_sizes[positive_axis], *target[positive_axis + 1 :]]
        )
    return sorting.take_along_axis(x, positions, positive_axis)


def choose(a: TensorLike, choices: TensorLike, out: None = None, mode: str = "raise") -> Tensor:
    """Elements of several tensors: for each index in ``a``, the element of that choice at the same position.

    Args:
        a: indices of choices, integers of any shape.
        choices: a list of tensors that broadcast with ``a``, or a tensor of them.
        mode: what to do with indices out of range: "raise"; "wrap", modulo the number of choices; or "clip".

    Returns:
        A tensor with the shape to which all broadcast, and the common dtype of the choices.

    Raises:
        InvalidArgumentError: an index is out of range and ``mode`` is "raise", ``mode`` is unknown,
            there are no choices, or the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.choose([0, 1, 0], [[1, 2, 3], 9]).numpy()
    array([1, 9, 3])
    """
    reject_unsupported("choose", out=out)
    options = promote_together(*(choices if isinstance(choices, list | tuple) else unstack(tensor(choices))))
    if not options:
        raise InvalidArgumentError("choose takes one choice or more, but the list is empty.")
    options = operands.broadcast_together(*options)
    which = indices_by_mode(integer_indices(a), len(options), mode)
    if mode == "raise":
        ok = reduce_all(logical_and(which >= 0, which < len(options)))
        which = required(which, ok, f"choose: an index is outside of [0, {len(options)}).")
    which, *options = operands.broadcast_together(which, *options)
    return take_along_axis(stack_op(options), expand_dims(which, 0), 0)[0]


def compress(condition: TensorLike, a: TensorLike, axis: int | None = None, out: None = None) -> Tensor:
    """The slices along ``axis`` for which ``condition`` holds.

    Args:
        condition: a vector of bools, not longer than the axis.
        axis: the axis; by default ``a`` is flattened.

    Returns:
        A tensor with the shape of ``a``, smaller along ``axis`` by an amount that depends on ``condition``,
        and its dtype.

    Raises:
        InvalidArgumentError: ``condition`` is no vector.

    >>> import dualflow as df
    >>> df.numpy.compress([True, False, True], [1, 2, 3]).numpy()
    array([1, 3])
    """
    reject_unsupported("compress", out=out)
    x = flat(tensor(a)) if axis is None else tensor(a)
    positive_axis = 0 if axis is None else normalize_axis(axis, len(x.shape))
    mask = to(tensor(condition), bool)
    if len(mask.shape) != 1:
        raise InvalidArgumentError(f"compress takes a vector of bools, not shape {mask.shape}; flatten it.")
    return boolean_mask(x[(*[slice(None)] * positive_axis, slice(None, mask.shape[0]))], mask, positive_axis)


def extract(condition: TensorLike, arr: TensorLike) -> Tensor:
    """The elements where ``condition`` holds (is not 0), as a vector.

    Args:
        condition: bools or numbers of as many elements as ``arr``.

    Returns:
        A vector of the dtype of ``arr``; its size depends on ``condition``.

    Raises:
        InvalidArgumentError: ``condition`` has another number of elements.

    >>> import dualflow as df
    >>> df.numpy.extract([True, False, True], [1, 2, 3]).numpy()
    array([1, 3])
    """
    return boolean_mask(flat(tensor(arr)), flat(to(tensor(condition), bool)))


@overload
def where(condition: TensorLike, /) -> tuple[Tensor, ...]: ...
@overload
def where(condition: TensorLike, x: TensorLike, y: TensorLike, /) -> Tensor: ...
@overload
def where(condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, /) -> Any: ...
def where(condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, /) -> Any:
    """``x`` where ``condition`` holds (is not 0), ``y`` elsewhere; without both, :func:`nonzero`.

    Args:
        condition: bools or numbers of any shape.
        x: numbers that broadcast with ``condition``; None by default.
        y: as ``x``.

    Returns:
        A tensor with the shape to which all broadcast, and the common dtype of ``x`` and ``y``.

    Raises:
        InvalidArgumentError: only one of ``x`` and ``y`` is passed, or the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.where([True, False], [1, 2], 0.5).numpy()
    array([1. , 0.5])
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise InvalidArgumentError("where takes both x and y, or neither for the places of true elements.")
    left, right = promote_together(x, y)
    return where_op(to(tensor(condition), bool), left, right)


def nonzero(a: TensorLike) -> tuple[Tensor, ...]:
    """The indices of the elements that are not 0, a vector for each axis.

    Args:
        a: numbers of one axis or more.

    Returns:
        A tuple of int64 vectors, one for each axis; their size depends on the elements.

    Raises:
        InvalidArgumentError: ``a`` has no axes.

    >>> import dualflow as df
    >>> [places.numpy().tolist() for places in df.numpy.nonzero([[0, 5], [7, 0]])]
    [[0, 1], [1, 0]]
    """
    x = tensor(a)
    if not x.shape:
        raise InvalidArgumentError(
            "nonzero takes a tensor of one axis or more; use atleast_1d, or reshape it to (1,)."
        )
    indices = argwhere(x)
    return tuple(indices[:, i] for i in range(len(x.shape)))


def argwhere(a: TensorLike) -> Tensor:
    """The indices of the elements that are not 0, a row for each element.

    Returns:
        An int64 matrix with a column for each axis; the number of rows depends on the elements.

    >>> import dualflow as df
    >>> df.numpy.argwhere([[0, 5], [7, 0]]).numpy().tolist()
    [[0, 1], [1, 0]]
    """
    return where_op(to(tensor(a), bool))


def flatnonzero(a: TensorLike) -> Tensor:
    """The indices, in the flattened tensor, of the elements that are not 0.

    Returns:
        An int64 vector; its size depends on the elements.

    >>> import dualflow as df
    >>> df.numpy.flatnonzero([[0, 5], [7, 0]]).numpy()
    array([1, 2])
    """
    return argwhere(flat(tensor(a)))[:, 0]


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: TensorLike = 0) -> Tensor:
    """The elements of the first choice whose condition holds, or ``default``.

    Args:
        condlist: a list of tensors of bools.
        choicelist: a list of as many tensors; all broadcast.
        default: the value where no condition holds.

    Returns:
        A tensor with the shape to which all broadcast, and the common dtype of the choices and ``default``.

    Raises:
        InvalidArgumentError: the lists are empty or of different lengths, or the shapes do not broadcast.
        DTypeError: a choice can't become a tensor.

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
    *choices, result = promote_together(*choicelist, default)
    for condition, value in zip(reversed(list(condlist)), reversed(choices), strict=True):
        result = where_op(tensor(condition), value, result)
    return result


def piecewise(
    x: TensorLike, condlist: Sequence[TensorLike], funclist: Sequence[Any], *args: Any, **kw: Any
) -> Tensor:
    """The results of the function of the last condition that holds at each element.

    Each function is applied to all of ``x``; its results are selected where its condition holds.

    Args:
        condlist: a list of tensors of bools with the shape of ``x``.
        funclist: a function of ``x`` or a number for each condition, and optionally one for the remaining
            elements, which are 0 by default.
        *args: further arguments of the functions.
        **kw: further named arguments of the functions.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: ``funclist`` has neither as many entries as ``condlist`` nor one more.

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
        result = where_op(test, value(function), result)
    return result


def put_along_axis(arr: TensorLike, indices: TensorLike, values: TensorLike, axis: int) -> Tensor:
    """A copy of ``arr`` with ``values`` at the indices of each row along ``axis``.

    Args:
        indices: integers with as many axes as ``arr``.
        values: numbers that broadcast to the shape of ``indices``; cast to the dtype of ``arr``.
        axis: the axis; None to flatten ``arr``.

    Returns:
        A tensor with the shape and dtype of ``arr``.

    Raises:
        InvalidArgumentError: ``values`` doesn't broadcast.

    >>> import dualflow as df
    >>> df.numpy.put_along_axis([[1, 2], [3, 4]], [[0], [1]], 9, 1).numpy().tolist()
    [[9, 2], [3, 9]]
    """
    x = tensor(arr)
    shape = operands.sizes(x)
    if axis is None:
        x, axis = flat(x), 0
    positive_axis = normalize_axis(axis, len(x.shape))
    positions = indices_by_mode(integer_indices(indices), operands.sizes(x)[positive_axis], "raise")
    size = static_int(x.shape[positive_axis], "the size of the axis")
    # hits[..., i]: whether index i addresses this position; later indices overwrite earlier ones
    hits = equal(
        expand_dims(positions, positive_axis + 1),
        reshape(tensor(np.arange(size)), [size, *[1] * (len(x.shape) - positive_axis - 1)]),
    )
    new = (
        broadcast_to(tensor(values, x.dtype), tuple(positions.shape))
        if positions.shape.is_static
        else tensor(values, x.dtype)
    )
    for i in range(static_int(positions.shape[positive_axis], "the number of indices")):
        front = (slice(None),) * positive_axis
        x = where_op(hits[(*front, i)], new[(*front, slice(i, i + 1))], x)
    return reshape(x, shape)


complete_docstrings(globals())
make_entries(globals())
