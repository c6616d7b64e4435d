"""Functions over the rows of tensors: one after another, or in groups."""

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
    """The results of ``function`` for each row of ``elements``, stacked; rows don't know of each other."""
    return map(function, elements)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Carry a value through the rows of ``xs``: ``carry, y = f(carry, row)``; the last carry and all ys.

    Where ``f`` gives None for ``y``, zeros like ``init`` stand for it.

    Raises:
        TypeError: ``f`` can't be called.
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
    given: list[Any] = []

    def step(values: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        packed = None if xs is None else tree.pack_sequence_as(xs, row)
        following, y = f(tree.pack_sequence_as(init, values), packed)
        y = [df.zeros_like(x) for x in carry] if y is None else y
        given[:] = [y]
        flat = [convert_to_tensor(x) for x in tree.flatten(following)]
        return flat, [convert_to_tensor(x) for x in tree.flatten(y)]

    count = rows[0].shape[0] if length is None else int(length)
    last, columns = scan_loop(step, carry, [x[:count] for x in rows], count, reverse)
    return tree.pack_sequence_as(init, last), tree.pack_sequence_as(given[0], columns) if given else columns


def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """``f`` of all elements up to each along ``axis``, for an ``f`` whose grouping doesn't matter.

    Pairs are joined first, then the scan of the pairs gives every other result (Blelloch, "Prefix sums and
    their applications", 1990): ``f`` is called about ``2 * log2(n)`` times, on whole tensors.

    Raises:
        TypeError: ``f`` can't be called.
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

    def turned(tensors: Tensors) -> Tensors:
        return [df.reverse(x, [at]) for x, at in zip(tensors, axes, strict=True)] if reverse else tensors

    def joined(a: Tensors, b: Tensors) -> Tensors:
        made = f(tree.pack_sequence_as(elems, a), tree.pack_sequence_as(elems, b))
        return [convert_to_tensor(x) for x in tree.flatten(made)]

    return tree.pack_sequence_as(elems, turned(_prefixes(joined, turned(flat), axes)))


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
    return [_interleaved(a, b, at) for a, b, at in zip(even, odd, axes, strict=True)]


def _every(elems: Tensors, axes: list[int], start: int, stop: int | None, step: int = 1) -> Tensors:
    return [x[(slice(None),) * at + (slice(start, stop, step),)] for x, at in zip(elems, axes, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """The elements of both along ``axis``, in turns; ``even`` may have one more."""
    [pairs] = _every([even], [axis], 0, odd.shape[axis])
    both = df.stack([pairs, odd], axis + 1)
    sizes = list(odd.shape)
    sizes[axis] *= 2
    mixed = df.reshape(both, sizes)
    return mixed if even.shape[axis] == odd.shape[axis] else df.concat([mixed, even[_last(axis)]], axis)


def _last(axis: int) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(-1, None),)
