"""``vmap`` and ``vectorized_map``: a function of one batch element, for a whole batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.core.tree import flatten, unflatten
from dualflow.core.warning import warn_user
from dualflow.function.batching.batch_function import batch_function
from dualflow.function.batching.batched_value import BatchedValue, UnbatchableError, moved_axis
from dualflow.function.control.maps import map_sequentially
from dualflow.function.control.postponed_calls import postponable
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat
from dualflow.ops.static import python_shape
from dualflow.ops.tensor_sizes import axis_size, axis_sizes, sizes_of

if TYPE_CHECKING:
    from typing import TypeAlias

    BatchAxes: TypeAlias = int | Sequence[object] | None
    """One axis, or an entry for each part: an axis, None, or a structure of these."""


@entry
def vmap(
    fn: Callable[..., Any], in_axes: BatchAxes = 0, out_axes: BatchAxes = 0, axis_size: int | None = None
) -> Callable[..., Any]:
    """A function that computes ``fn`` for a batch of arguments.

    ``fn`` is traced once, with symbolic tensors for one batch element. Then each of its ops runs once for the
    whole batch. If a condition differs between elements, each branch that some element takes is computed, and
    a loop runs until no element continues. Random numbers differ between elements.

    Args:
        fn: a function of tensors, or of structures of them, that returns such.
        in_axes: the batch axis of the arguments: one int for all of them, or a sequence with an entry for
            each positional argument: an int, None for an argument that the elements share, or a structure of
            these like the argument's. The batch axis of keyword arguments is 0.
        out_axes: the batch axis of the results: one int for all of them, or a structure like the result's,
            with None for a result that does not depend on the element.
        axis_size: the size of the batch; required if no argument has a batch axis.

    Returns:
        A function of the same arguments, which can be compiled by ``df.function``, differentiated and batched
        again.

    Raises:
        InvalidArgumentError: by that function: the sizes of the batch axes differ, an axis is out of range,
            an operation has no batched form, or a result depends on the element and its ``out_axes`` is None.

    >>> import dualflow as df
    >>> dot = df.autodiff.vmap(lambda x, w: df.reduce_sum(x * w), in_axes=(0, None))
    >>> dot(df.constant([[1.0, 2.0], [3.0, 4.0]]), df.constant([1.0, 10.0])).numpy()
    array([21., 43.], dtype=float32)
    """
    return _batched(fn, in_axes, out_axes, axis_size, sequential=False)


def _batched(
    fn: Callable[..., Any], in_axes: Any, out_axes: Any, axis_size: int | None, *, sequential: bool
) -> Callable[..., Any]:
    """:func:`vmap`; with ``sequential`` a program of dynamic sizes may compute element after element."""

    @entry
    @functools.wraps(fn)
    def batched(*args: Any, **kwargs: Any) -> Any:
        values, structure = flatten((args, kwargs))
        axes = [*_in_axes(args, in_axes), *[0] * len(flatten(kwargs)[0])]
        arguments = [_argument(x, axis) for x, axis in zip(values, axes, strict=True)]
        tensors = [x for x in arguments if isinstance(x, BatchedValue)]
        count = _count(tensors, axis_size)

        def call(function: Callable[..., Any], leaves: Sequence[Any]) -> Any:
            element_args, element_kwargs = unflatten(structure, leaves)
            return function(*element_args, **element_kwargs)

        results, returned = batch_function(fn, call, arguments, count, sequential=sequential)
        size = next(sizes_of(x.tensor)[0] for x in tensors if x.is_batched) if count is None else count
        axes_out = _spread(out_axes, unflatten(returned, results), "out_axes")
        return unflatten(returned, [_result(x, a, size) for x, a in zip(results, axes_out, strict=True)])

    return batched


@entry
@postponable
def vectorized_map(
    fn: Callable[[Any], Any], elems: object, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """The results of ``fn`` for the slices of ``elems`` along the first axis, stacked; see :func:`vmap`.

    Args:
        fn: a function of one slice, in the structure of ``elems``, that returns tensors in any structure.
        elems: a tensor or a structure of tensors with equal first sizes; a static one of 1 broadcasts.
        fallback_to_while_loop: whether to compute one slice after the other if an operation has no batched
            form; else this is an error.
        warn: whether to warn of the fallback.

    Returns:
        Tensors in the structure of the result of ``fn``, with a new first axis.

    Raises:
        InvalidArgumentError: a scalar among ``elems``, or first sizes that differ; without the fallback, an
            operation has no batched form.

    >>> import dualflow as df
    >>> df.vectorized_map(lambda row: {"sum": df.reduce_sum(row)}, df.ones([2, 3]))["sum"].numpy()
    array([3., 3.], dtype=float32)
    """
    elems = _with_equal_first_sizes(elems)
    try:
        return _batched(fn, 0, 0, None, sequential=fallback_to_while_loop)(elems)
    except UnbatchableError as error:
        if not fallback_to_while_loop:
            raise
        reason = str(error)
    if warn:
        warn_user(f"vectorized_map computes one element after the other: {reason}")
    return map_sequentially(fn, elems)


def _with_equal_first_sizes(elems: object) -> object:
    """The tensors, of which those with a first size of 1 are broadcast to the first size of the others."""
    leaves, structure = flatten(elems)
    if len(leaves) < 2:
        return elems
    tensors = [convert_to_tensor(x) for x in leaves]
    is_one = [len(x.shape) > 0 and (n := python_shape(x)[0]) is not None and n == 1 for x in tensors]
    longer = [x for x, one in zip(tensors, is_one, strict=True) if not one and len(x.shape)]
    if not longer or not any(is_one):
        return elems
    count = axis_size(longer[0], 0)
    pairs = zip(tensors, is_one, strict=True)
    return unflatten(
        structure, [broadcast_to(x, [count, *axis_sizes(x)[1:]]) if one else x for x, one in pairs]
    )


def _argument(value: Any, axis: int | None) -> Any:
    """An argument as a batched value, with the batch axis first; a shared Python value unchanged."""
    if axis is None:
        return (
            BatchedValue(convert_to_tensor(value), is_batched=False) if isinstance(value, TENSORS) else value
        )
    tensor = convert_to_tensor(value)
    rank = len(tensor.shape)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"an argument of shape {tensor.shape} has no axis {axis}, its batch axis; give in_axes, with "
            "None for arguments that the batch elements share."
        )
    return BatchedValue(moved_axis(tensor, axis % rank, 0), is_batched=True)


def _count(arguments: Sequence[BatchedValue], axis_size: int | None) -> int | None:
    """The size of the batch; None if it is dynamic."""
    counts = {x.tensor.shape[0] for x in arguments if x.is_batched}
    if axis_size is not None:
        counts.add(axis_size)
    if not counts:
        raise InvalidArgumentError("no argument has a batch axis; give axis_size, or an axis in in_axes.")
    static = counts - {None}
    if len(static) > 1:
        raise InvalidArgumentError(
            f"the batch axes have different sizes: {sorted(static, key=str)}; they must be equal."
        )
    return None if None in counts else int(static.pop())


def _in_axes(args: Sequence[Any], in_axes: Any) -> list[int | None]:
    if in_axes is None or isinstance(in_axes, int):
        return list(_spread(in_axes, list(args), "in_axes"))
    if len(in_axes) != len(args):
        raise InvalidArgumentError(
            f"in_axes has {len(in_axes)} entries for {len(args)} positional arguments; give one for each."
        )
    return [axis for arg, entry in zip(args, in_axes, strict=True) for axis in _spread(entry, arg, "in_axes")]


def _spread(axes: Any, values: Any, what: str) -> Iterator[int | None]:
    """The batch axis of each leaf of ``values``, from one number or a structure of axes."""
    if axes is None or isinstance(axes, int):
        yield from [axes] * len(flatten(values, _is_batched)[0])
        return
    entries = _children(axes)
    parts = _children(values)
    if entries.keys() != parts.keys():
        raise InvalidArgumentError(
            f"{what} has the structure of {axes!r}, but needs that of the values or one axis for all."
        )
    for key in sorted(entries) if isinstance(axes, dict) else entries:
        yield from _spread(entries[key], parts[key], what)


def _children(value: Any) -> dict[Any, Any]:
    if isinstance(value, dict):
        return value
    return dict(enumerate(value)) if isinstance(value, list | tuple) and not _is_batched(value) else {}


def _is_batched(value: Any) -> bool:
    return isinstance(value, BatchedValue)


def _result(value: BatchedValue, axis: int | None, count: Any) -> Any:
    """The result with its batch axis at ``axis``; ``count`` is a number or, if it is dynamic, a scalar."""
    if axis is None:
        if value.is_batched:
            raise InvalidArgumentError("a result is batched, and its out_axes is None; give it an axis.")
        return value.tensor
    if value.is_batched or value.tensor.shape.is_static:
        stacked = value.with_batch_axis(count)
    else:
        sizes = concat([reshape(count, [1]), sizes_of(value.tensor)], 0)
        stacked = broadcast_to(value.tensor, sizes)
    rank = len(stacked.shape)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"a result of shape {stacked.shape} has no axis {axis}; change out_axes.")
    return moved_axis(stacked, 0, axis % rank)
