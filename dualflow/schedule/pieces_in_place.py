"""Pieces of a concatenation that are computed in the buffer of its result, without a copy.

    x = multiply(...)     step 3: writes elements 0 to 503 of z
    y = add(...)          step 4: writes elements 504 to 511 of z
    z = concat(x, y)      step 5: nothing is left to do

A piece is computed there if only the assembled value reads it, if it has the same strides there as in a
buffer of its own, and if the steps in between compute other pieces. So kernels only write to another buffer,
and no step needs more memory than with copies.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Value
from dualflow.graph.views import base_of, sizes
from dualflow.graph.virtual_array import VirtualArray
from dualflow.ops.op_kinds import CopyPieces
from dualflow.schedule.call_order import Allocation, BufferKind
from dualflow.schedule.nest import contiguous_strides
from dualflow.schedule.operands import CallKind, StridedNode, kind_of
from dualflow.sizes.symbolic_sizes import is_static


class PieceOf(NamedTuple):
    """A piece of an assembled value ``whole``, and the element of it at which the piece begins."""

    whole: Value
    offset: int


def pieces_in_place(
    steps: Sequence[StridedNode], live_out: Collection[Value], allocations: Mapping[Value, Allocation]
) -> dict[Value, PieceOf]:
    """The pieces of concatenations that are computed in the buffer of the result.

    Args:
        steps: the calls in order.
        live_out: values that are read after the last step.
        allocations: the storage of the values without pieces. Pieces move from the arena to the arena or to
            an output. They do not move to the buffer of an input, which is written only after all calls that
            may fail.
    """
    producers = {value: at for at, step in enumerate(steps) for value in step.node.outputs}
    reads = Counter(base for step in steps for base in map(base_of, step.inputs))
    reads.update(map(base_of, live_out))
    pieces: dict[Value, PieceOf] = {}
    for at, step in enumerate(steps):
        if kind_of(step.node) is not CallKind.ASSEMBLY or not _may_hold_pieces(allocations[step.node.output]):
            continue
        offsets = _piece_offsets(step)
        movable = {
            v: offset
            for v, offset in offsets.items()
            if v in producers
            and reads[v] == 1
            and allocations[v] == Allocation(BufferKind.ARENA)
            and kind_of(steps[producers[v]].node) in (CallKind.KERNEL, CallKind.ASSEMBLY)
        }
        for value in _computed_last(movable, producers, at):
            pieces[value] = PieceOf(step.node.output, movable[value])
    return pieces


def _may_hold_pieces(allocation: Allocation) -> bool:
    """Whether the storage may be written early, and is contiguous."""
    return allocation.kind in (BufferKind.ARENA, BufferKind.OUTPUT) and allocation.strides is None


def _computed_last(pieces: Mapping[Value, int], producers: Mapping[Value, int], number: int) -> list[Value]:
    """The pieces computed by the steps just before step ``number``, which compute nothing else."""
    last: list[Value] = []
    by_step: dict[int, list[Value]] = {}
    for value in pieces:
        by_step.setdefault(producers[value], []).append(value)
    step = number - 1
    while step in by_step:
        last += by_step[step]
        step -= 1
    return last


def _piece_offsets(step: StridedNode) -> dict[Value, int]:
    """The offset in the output of each input that is a piece, and contiguous there.

    Empty if pieces overlap, since a copy would overwrite a computed piece.
    """
    node, kind = step.node, step.node.op.kind
    assert isinstance(kind, CopyPieces)
    values = (node.output, *step.inputs)
    if not all(is_static(v.spec.shape) and v.spec.shape.num_elements() for v in values):
        return {}
    arrays = [VirtualArray(sizes(v), contiguous_strides(sizes(v))) for v in values]
    inputs = dict(zip(map(id, arrays), values, strict=True))
    pieces = kind.pieces(*arrays, **node.attrs)
    if sum(math.prod(target.shape) for target, _ in pieces) != math.prod(arrays[0].shape):
        return {}
    offsets: dict[Value, int] = {}
    for target, source in pieces:
        if not isinstance(source, VirtualArray):
            continue
        value = inputs[id(source.owner)]
        shape = sizes(value)
        if source.shape == target.shape == shape and source.strides == target.strides == contiguous_strides(
            shape
        ):
            offsets[value] = target.offset
    return offsets
