"""``map``, ``scan`` and ``associative_scan``: functions over slices along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras.src import tree

import dualflow as df
from dualflow.function.control.scan_loop import scan_loop
from keras_dualflow.src.core.conversion import convert_to_tensor

Tensors = list[Any]


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """The results of ``f`` for each row of ``xs``, stacked."""
    return scan(lambda _, x: ((), f(x)), (), xs)[1]


def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """The results of ``function`` for each row of ``elements``, stacked; rows are independent."""
    return map(function, elements)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """The final carry, and the stacked ``y``, of ``carry, y = f(carry, row)`` over the rows of ``xs``.

    If ``y`` is None, it is replaced by zeros like ``init``.

    Raises:
        TypeError: ``f`` is not callable.
        ValueError: neither rows nor a length, or ``unroll`` is no positive integer.
    """
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    rows = [] if xs is None else [convert_to_tensor(x) for x in tree.flatten(xs)]
    carry = [convert_to_tensor(x) for x in tree.flatten(init)]
    outputs: list[Any] = []

    def step(values: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        packed = None if xs is None else tree.pack_sequence_as(xs, row)
        new_carry, y = f(tree.pack_sequence_as(init, values), packed)
        y = [df.zeros_like(x) for x in carry] if y is None else y
        outputs[:] = [y]
        flat = [convert_to_tensor(x) for x in tree.flatten(new_carry)]
        return flat, [convert_to_tensor(x) for x in tree.flatten(y)]

    count = rows[0].shape[0] if length is None else int(length)
    final, stacks = scan_loop(step, carry, [x[:count] for x in rows], count, reverse=reverse)
    ys = tree.pack_sequence_as(outputs[0], stacks) if outputs else stacks
    return tree.pack_sequence_as(init, final), ys


def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The inclusive scan of the elements along ``axis`` with an associative function ``f``.

    Pairs are combined first, then the scan of the pairs contains every other result (Blelloch, "Prefix sums
    and their applications", 1990). ``f`` is called about ``2 * log2(n)`` times, on whole tensors.

    Raises:
        TypeError: ``f`` is not callable.
        ValueError: the sizes along ``axis`` differ.
    """
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    flat = [convert_to_tensor(x) for x in tree.flatten(elems)]
    sizes = [x.shape[axis] for x in flat]
    if len(set(sizes)) > 1:
        shapes = [tuple(x.shape) for x in flat]
        raise ValueError(
            f"Array inputs to associative_scan must have the same first dimension. (saw: {shapes})"
        )
    axes = [axis % len(x.shape) for x in flat]

    def in_order(tensors: Tensors) -> Tensors:
        return [df.reverse(x, [at]) for x, at in zip(tensors, axes, strict=True)] if reverse else tensors

    def combined(a: Tensors, b: Tensors) -> Tensors:
        result = f(tree.pack_sequence_as(elems, a), tree.pack_sequence_as(elems, b))
        return [convert_to_tensor(x) for x in tree.flatten(result)]

    return tree.pack_sequence_as(elems, in_order(_prefixes(combined, in_order(flat), axes)))


def _prefixes(f: Callable[[Tensors, Tensors], Tensors], elems: Tensors, axes: list[int]) -> Tensors:
    size = elems[0].shape[axes[0]]
    if size < 2:
        return elems
    odd = _prefixes(f, f(_every(elems, axes, 0, size - 1, 2), _every(elems, axes, 1, None, 2)), axes)
    later = _every(elems, axes, 2, None, 2)
    first = _every(elems, axes, 0, 1)
    if not later[0].shape[axes[0]]:
        even = first
    else:
        before = _every(odd, axes, 0, -1) if size % 2 == 0 else odd
        even = [df.concat(pair, at) for at, *pair in zip(axes, first, f(before, later), strict=True)]
    return [_interleave(a, b, at) for a, b, at in zip(even, odd, axes, strict=True)]


def _every(elems: Tensors, axes: list[int], start: int, stop: int | None, step: int = 1) -> Tensors:
    return [x[(slice(None),) * at + (slice(start, stop, step),)] for x, at in zip(elems, axes, strict=True)]


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """The elements of both, interleaved along ``axis``; ``even`` may have one more."""
    [pairs] = _every([even], [axis], 0, odd.shape[axis])
    both = df.stack([pairs, odd], axis + 1)
    sizes = list(odd.shape)
    sizes[axis] *= 2
    interleaved = df.reshape(both, sizes)
    if even.shape[axis] == odd.shape[axis]:
        return interleaved
    return df.concat([interleaved, even[_last(axis)]], axis)


def _last(axis: int) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(-1, None),)
