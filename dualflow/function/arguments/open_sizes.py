"""Traces for any size: which calls they serve, and which sizes to leave open when calls differ in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dualflow.core.records import replace
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.arguments.signature import CallArguments, Key
from dualflow.function.arguments.trace_key import Leaf, TensorLeaf

BATCH: Final = "batch"
"""``reduce_retracing`` for batches, whose rows are alike."""
_FEW: Final = 3
"""Of batches whose rows differ in size, so many kinds have sizes of their own."""


def open_sizes(key: Key) -> int:
    """How many sizes of tensors a trace made for ``key`` leaves open."""
    return sum(leaf.spec.shape.count(None) for leaf in key[1] if isinstance(leaf, TensorLeaf))


def serves(key: Key, call: Key) -> bool:
    """Whether a trace for ``key`` takes the arguments of ``call``, which differ in open sizes at most."""
    return key[0] == call[0] and all(_takes(leaf, given) for leaf, given in zip(key[1], call[1], strict=True))


def relaxed(call: CallArguments, earlier: Sequence[Key], rows_alike: bool = False) -> CallArguments:
    """``call`` with the sizes left open in which it differs from earlier ones that are like it otherwise.

    As TensorFlow does it, only sizes are: another rank, dtype or Python value stays another trace. Where rows
    should be alike, other sizes than the first are only left open once several have been seen.
    """
    leaves = call.key[1]
    like = [old for old in earlier if old[0] == call.key[0] and all(map(_alike, old[1], leaves))]
    if rows_alike:
        near = [old for old in like if all(map(_rows_alike, old[1], leaves))]
        like = near if near or len(like) < _FEW else like
    for old in like:
        leaves = tuple(map(_common, old[1], leaves))
    return replace(call, key=(call.key[0], leaves))


def _takes(leaf: Leaf, given: Leaf) -> bool:
    if isinstance(leaf, TensorLeaf) and isinstance(given, TensorLeaf):
        return leaf.spec.is_compatible_with(given.spec)
    return leaf == given


def _alike(old: Leaf, new: Leaf) -> bool:
    if isinstance(old, TensorLeaf) and isinstance(new, TensorLeaf):
        return old.spec.dtype is new.spec.dtype and old.spec.rank == new.spec.rank
    return old == new


def _rows_alike(old: Leaf, new: Leaf) -> bool:
    """Whether two leaves that are alike differ in the first size at most."""
    if not (isinstance(old, TensorLeaf) and isinstance(new, TensorLeaf)):
        return True
    return all(a is None or a == b for a, b in zip(old.spec.shape[1:], new.spec.shape[1:], strict=True))


def _common(old: Leaf, new: Leaf) -> Leaf:
    if not (isinstance(old, TensorLeaf) and isinstance(new, TensorLeaf)):
        return new
    sizes = [b if a == b else None for a, b in zip(old.spec.shape, new.spec.shape, strict=True)]
    return TensorLeaf(TensorSpec(Shape(sizes), new.spec.dtype, new.spec.name))
