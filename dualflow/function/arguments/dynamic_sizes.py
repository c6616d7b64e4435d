"""Dynamic sizes of traces (``reduce_retracing``): which sizes these are, and which calls a trace serves."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

from dualflow.core.records import replace
from dualflow.core.shape import UNKNOWN_RANK, Dim, Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure
from dualflow.function.arguments.match_structure import kind_serves
from dualflow.function.arguments.signature import CallArguments, Key
from dualflow.function.arguments.trace_key import Leaf, TensorLeaf, VariableLeaf

BATCH: Final = "batch"
"""The value of ``reduce_retracing`` for calls with batches that differ in their first size."""
Axis = tuple[int, int]
"""The index of a leaf of a key, and the index of an axis of this tensor."""
_MAX_ROW_SHAPES: Final = 3
"""The number of traces with different sizes after the first axis, before these sizes become dynamic too."""


def count_dynamic_sizes(key: Key) -> int:
    """The number of dynamic sizes in the specs of ``key``."""
    return sum(leaf.spec.shape.count(None) for leaf in key.leaves if isinstance(leaf, TensorLeaf))


def serves(key: Key, call: Key) -> bool:
    """Whether a trace for ``key`` accepts calls with the key ``call``: they differ in dynamic sizes only."""
    return (
        key.dict_keys == call.dict_keys
        and structure_serves(key.structure, call.structure)
        and all(_accepts(old, new) for old, new in zip(key.leaves, call.leaves, strict=True))
    )


def structure_serves(old: Structure, new: Structure) -> bool:
    """Whether a trace for the structure ``old`` serves ``new``: its types are equal or subtypes."""
    if old.keys != new.keys or len(old.children) != len(new.children):
        return False
    return kind_serves(old.kind, new.kind) and all(map(structure_serves, old.children, new.children))


def serves_others(key: Key) -> bool:
    """Whether a trace for ``key`` may serve calls with other keys: by dynamic sizes, or by subtypes."""
    return bool(count_dynamic_sizes(key)) or _has_subtypes(key.structure)


def _has_subtypes(structure: Structure) -> bool:
    return hasattr(structure.kind, "serves") or any(map(_has_subtypes, structure.children))


def relaxed(
    call: CallArguments, earlier: Sequence[Key], batches: bool, fixed: Container[Axis]
) -> CallArguments:
    """``call``, whose sizes that differ from ``earlier`` keys of the same structure become dynamic.

    As in TensorFlow, another rank, dtype or Python value needs another trace. With ``batches``, sizes other
    than the first become dynamic only after three keys that differ in these. The sizes of ``fixed`` axes of
    leaves never become dynamic. A call with a tensor of unknown rank stays as it is.
    """
    leaves = call.key.leaves
    if any(isinstance(leaf, TensorLeaf) and leaf.spec.shape is UNKNOWN_RANK for leaf in leaves):
        return call
    structure = call.key.structure
    alike = [old for old in earlier if old.structure == structure and all(map(_alike, old.leaves, leaves))]
    if batches:
        same_rows = [old for old in alike if all(map(_rows_alike, old.leaves, leaves))]
        alike = same_rows if same_rows or len(alike) < _MAX_ROW_SHAPES else alike
    for old in alike:
        pairs = enumerate(zip(old.leaves, leaves, strict=True))
        leaves = tuple([_common(before, leaf, i, fixed) for i, (before, leaf) in pairs])
    return replace(call, key=call.key._replace(leaves=leaves))


def with_dynamic_first_axes(call: CallArguments, fixed: Container[Axis]) -> CallArguments:
    """``call``, whose tensors have a dynamic first size: batches differ more often than what is in them.

    A size of 0 or 1 stays static, since ops treat it unlike others; so do the sizes of ``fixed`` axes.
    """
    leaves = [_with_dynamic_first_axis(leaf, (i, 0) in fixed) for i, leaf in enumerate(call.key.leaves)]
    return replace(call, key=call.key._replace(leaves=tuple(leaves)))


def _with_dynamic_first_axis(leaf: Leaf, is_fixed: bool) -> Leaf:
    if is_fixed or not isinstance(leaf, TensorLeaf) or leaf.spec.shape is UNKNOWN_RANK or not leaf.spec.shape:
        return leaf
    first, *others = leaf.spec.shape
    if first is None or first < 2:
        return leaf
    return _with_sizes(leaf, [None, *others])


def _with_sizes(leaf: TensorLeaf, sizes: Sequence[Dim]) -> TensorLeaf:
    return TensorLeaf(TensorSpec(Shape(sizes), leaf.spec.dtype, leaf.spec.name))


def _accepts(old: Leaf, new: Leaf) -> bool:
    """Whether a trace with the leaf ``old`` accepts arguments with the leaf ``new``."""
    if isinstance(old, TensorLeaf) and isinstance(new, TensorLeaf):
        return old.spec.is_compatible_with(new.spec)
    return old == new


def _alike(old: Leaf, new: Leaf) -> bool:
    """Whether two leaves are equal, or differ in sizes only."""
    if isinstance(old, TensorLeaf) and isinstance(new, TensorLeaf):
        return old.spec.dtype is new.spec.dtype and old.spec.rank == new.spec.rank
    return old == new


def _rows_alike(old: Leaf, new: Leaf) -> bool:
    """Whether two leaves that differ in sizes only have the same shape after the first axis."""
    if not (isinstance(old, TensorLeaf) and isinstance(new, TensorLeaf)):
        return True
    return all(a is None or a == b for a, b in zip(old.spec.shape[1:], new.spec.shape[1:], strict=True))


def input_leaves(key: Key) -> list[int]:
    """For each input of a trace for ``key``, the index of its leaf; each variable is one input."""
    indices: list[int] = []
    aliases: set[int] = set()
    for i, leaf in enumerate(key.leaves):
        if isinstance(leaf, TensorLeaf) or (isinstance(leaf, VariableLeaf) and leaf.alias not in aliases):
            indices.append(i)
        if isinstance(leaf, VariableLeaf):
            aliases.add(leaf.alias)
    return indices


def _common(old: Leaf, new: Leaf, leaf_index: int, fixed: Container[Axis]) -> Leaf:
    """The leaf ``new``, number ``leaf_index``, with those sizes dynamic in which ``old`` differs."""
    if not (isinstance(old, TensorLeaf) and isinstance(new, TensorLeaf)):
        return new
    pairs = enumerate(zip(old.spec.shape, new.spec.shape, strict=True))
    sizes = [b if a == b or (leaf_index, axis) in fixed else None for axis, (a, b) in pairs]
    return _with_sizes(new, sizes)
