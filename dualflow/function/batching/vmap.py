"""``vmap`` and ``vectorized_map``: a function of one row, for all rows at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.core.tree import flatten, unflatten
from dualflow.core.warning import warn_user
from dualflow.function.batching.batched_value import BatchedValue, UnbatchableError, moved_axis
from dualflow.function.batching.map_rows import map_rows
from dualflow.function.control.maps import map_in_iteration
from dualflow.ops.creation import convert_to_tensor


@entry
def vmap(
    fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None
) -> Callable[..., Any]:
    """A function that computes ``fn`` for all rows of its arguments at once.

    ``fn`` runs once, with symbols for one row, as a function does that is compiled; then each of its ops runs
    once for all rows. Where a condition differs from row to row, each branch that a row takes is computed,
    and a loop iterations until the last row is done. Random numbers differ from row to row.

    Args:
        fn: takes tensors, or structures of them, and returns some.
        in_axes: the axis of each argument along which its rows lie: one number for all of them, or a sequence
            with an entry for each positional argument, which is a number, None for what all rows share, or a
            structure of these like the argument's. Keyword arguments have their rows along axis 0.
        out_axes: the axis along which the rows of results are stacked: one number for all of them, or a
            structure like the result's, with None for what is the same for all rows.
        axis_size: the number of rows, where no argument has any.

    Returns:
        A function of the same arguments, which can be compiled by ``df.function``, differentiated and mapped
        again.

    Raises:
        InvalidArgumentError: by that function: rows that differ in number, an axis out of range, what can't
            be done for all rows at once, or rows that differ where ``out_axes`` says None.

    >>> import dualflow as df
    >>> dot = df.autodiff.vmap(lambda x, w: df.reduce_sum(x * w), in_axes=(0, None))
    >>> dot(df.constant([[1.0, 2.0], [3.0, 4.0]]), df.constant([1.0, 10.0])).numpy()
    array([21., 43.], dtype=float32)
    """

    @entry
    @functools.wraps(fn)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        values, structure = flatten((args, kwargs))
        axes = [*_in_axes(args, in_axes), *[0] * len(flatten(kwargs)[0])]
        given = [_argument(x, axis) for x, axis in zip(values, axes, strict=True)]
        count = _count([x for x in given if isinstance(x, BatchedValue)], axis_size)

        def call(function: Callable[..., Any], leaves: Sequence[Any]) -> Any:
            row_args, row_kwargs = unflatten(structure, leaves)
            return function(*row_args, **row_kwargs)

        found, returned = map_rows(fn, call, given, count)
        places = _spread(out_axes, unflatten(returned, found), "out_axes")
        return unflatten(returned, [_result(x, place, count) for x, place in zip(found, places, strict=True)])

    return mapped


@entry
def vectorized_map(
    fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """``fn`` of each row of ``elems``, stacked, computed for all rows at once: see :func:`vmap`.

    Args:
        fn: takes a row, in the structure of ``elems``, and returns tensors in any structure.
        elems: a tensor or a structure of them, whose first sizes are equal.
        fallback_to_while_loop: compute rows one after the other where they can't be computed at once.
        warn: say so where that happens.

    Raises:
        InvalidArgumentError: a scalar among ``elems``, or first sizes that differ; without the fallback, what
            can't be done for all rows at once.

    >>> import dualflow as df
    >>> df.vectorized_map(lambda row: {"sum": df.reduce_sum(row)}, df.ones([2, 3]))["sum"].numpy()
    array([3., 3.], dtype=float32)
    """
    try:
        return vmap(fn)(elems)
    except UnbatchableError as refusal:
        if not fallback_to_while_loop:
            raise
        reason = str(refusal)
    if warn:
        warn_user(f"vectorized_map computes one row after the other: {reason}")
    return map_in_iteration(fn, elems)


def _argument(value: Any, axis: int | None) -> Any:
    """The rows of an argument along its first axis; Python values that all rows share stay as they are."""
    if axis is None:
        return BatchedValue(convert_to_tensor(value), False) if isinstance(value, TENSORS) else value
    tensor = convert_to_tensor(value)
    rank = len(tensor.shape)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"an argument of shape {tensor.shape} has no axis {axis}, along which its rows would lie; give "
            "in_axes, with None for what all rows share."
        )
    return BatchedValue(moved_axis(tensor, axis % rank, 0), True)


def _count(arguments: Sequence[BatchedValue], asked: int | None) -> int:
    counts = {x.tensor.shape[0] for x in arguments if x.by_row}
    if asked is not None:
        counts.add(asked)
    if not counts:
        raise InvalidArgumentError("no argument has rows; give axis_size, or an axis in in_axes.")
    if len(counts) > 1:
        raise InvalidArgumentError(
            f"the arguments have different numbers of rows: {sorted(counts, key=str)}; give them as many."
        )
    (count,) = counts
    if count is None:
        shape = next(x.tensor.shape for x in arguments if x.by_row)
        raise InvalidArgumentError(
            f"vmap: the number of rows has to be known, and an argument of shape {shape} leaves it open; "
            "give a shape to the argument."
        )
    return int(count)


def _in_axes(args: Sequence[Any], given: Any) -> list[int | None]:
    if given is None or isinstance(given, int):
        return list(_spread(given, list(args), "in_axes"))
    if len(given) != len(args):
        raise InvalidArgumentError(
            f"in_axes has {len(given)} entries for {len(args)} positional arguments; give one for each."
        )
    return [axis for arg, entry in zip(args, given, strict=True) for axis in _spread(entry, arg, "in_axes")]


def _spread(axes: Any, values: Any, what: str) -> Iterator[int | None]:
    """The axis for each leaf of ``values``."""
    if axes is None or isinstance(axes, int):
        yield from [axes] * len(flatten(values, _is_mapped)[0])
        return
    entries = _children(axes)
    parts = _children(values)
    if entries.keys() != parts.keys():
        raise InvalidArgumentError(
            f"{what} has the structure of {axes!r}, and the values have another one; give it theirs."
        )
    for key in sorted(entries) if isinstance(axes, dict) else entries:
        yield from _spread(entries[key], parts[key], what)


def _children(value: Any) -> dict[Any, Any]:
    if isinstance(value, dict):
        return value
    return dict(enumerate(value)) if isinstance(value, list | tuple) and not _is_mapped(value) else {}


def _is_mapped(value: Any) -> bool:
    return isinstance(value, BatchedValue)


def _result(found: BatchedValue, axis: int | None, count: int) -> Any:
    if axis is None:
        if found.by_row:
            raise InvalidArgumentError(
                "a result differs from row to row, and out_axes says None for it; give it an axis."
            )
        return found.tensor
    stacked = found.stacked(count)
    rank = len(stacked.shape)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"a result of shape {stacked.shape} has no axis {axis}; change out_axes.")
    return moved_axis(stacked, 0, axis % rank)
