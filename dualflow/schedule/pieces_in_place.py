"""Values that are computed where they are a piece of another one, so that none of their elements is copied.

    x = multiply(...)     step 3: writes elements 0 to 503 of z
    y = add(...)          step 4: writes elements 504 to 511 of z
    z = concat(x, y)      step 5: nothing is left to do

A piece is computed there if only the value that is put together reads it, if its elements lie there as they
do in memory of its own, and if the steps in between make other pieces. So no kernel changes but for where it
writes, and no step takes more memory than the copies would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.core.records import NamedTuple
from dualflow.core.symbolic_sizes import is_static
from dualflow.graph.axes import base_of, sizes
from dualflow.graph.ir import Value
from dualflow.ops.op_kinds import CopyPieces
from dualflow.schedule.assembly import address_of, owner_of
from dualflow.schedule.nest import contiguous_strides
from dualflow.schedule.operands import CallKind, StridedNode, kind_of
from dualflow.schedule.order import Allocation, BufferKind


class PieceOf(NamedTuple):
    """A value that is put together, and the element of it at which a piece begins."""

    whole: Value
    offset: int


def pieces_in_place(
    steps: Sequence[StridedNode], held: Collection[Value], allocations: Mapping[Value, Allocation]
) -> dict[Value, PieceOf]:
    """The values that are computed as pieces of others.

    Args:
        steps: the calls in order.
        held: values that are read when all steps are done.
        allocations: where the values would be. Pieces leave the arena, for it or for a result of the graph;
            what is computed in the place of an input is written when all that may fail has run.
    """
    makers = {value: at for at, step in enumerate(steps) for value in step.node.outputs}
    reads = Counter(base for step in steps for base in map(base_of, step.inputs))
    reads.update(map(base_of, held))
    found: dict[Value, PieceOf] = {}
    for at, step in enumerate(steps):
        if kind_of(step.node) is not CallKind.ASSEMBLY or not _in_order(allocations[step.node.output]):
            continue
        places = _places(step)
        alone = {
            v: offset
            for v, offset in places.items()
            if v in makers
            and reads[v] == 1
            and allocations[v] == Allocation(BufferKind.ARENA)
            and kind_of(steps[makers[v]].node) in (CallKind.KERNEL, CallKind.ASSEMBLY)
        }
        for value in _made_last(alone, makers, at):
            found[value] = PieceOf(step.node.output, alone[value])
    return found


def _in_order(allocation: Allocation) -> bool:
    """Whether a value may be written early, and its elements lie one behind another."""
    return allocation.kind in (BufferKind.ARENA, BufferKind.OUTPUT) and allocation.strides is None


def _made_last(pieces: Mapping[Value, int], makers: Mapping[Value, int], at: int) -> list[Value]:
    """Those of the pieces that are made by the steps right before step ``at``, which make nothing else."""
    found: list[Value] = []
    by_step: dict[int, list[Value]] = {}
    for value in pieces:
        by_step.setdefault(makers[value], []).append(value)
    while (at := at - 1) in by_step:
        found += by_step[at]
    return found


def _places(step: StridedNode) -> dict[Value, int]:
    """Where inputs that are whole pieces begin in the output; those that lie there as in their own memory.

    None where pieces overlap: what is copied would hide what has been computed there.
    """
    node, kind = step.node, step.node.op.kind
    assert isinstance(kind, CopyPieces)
    values = (node.output, *step.inputs)
    if not all(is_static(v.spec.shape) and v.spec.shape.num_elements() for v in values):
        return {}
    arrays = [as_strided(np.zeros(1, np.int8), sizes(v), contiguous_strides(sizes(v))) for v in values]
    inputs = {id(owner_of(array)): i for i, array in enumerate(arrays)}
    pieces = kind.pieces(*arrays, **node.attrs)
    if sum(target.size for target, _ in pieces) != arrays[0].size:
        return {}
    places: dict[Value, int] = {}
    for target, source in pieces:
        if not isinstance(source, np.ndarray):
            continue
        value = values[inputs[id(owner_of(source))]]
        shape = sizes(value)
        if source.shape == target.shape == shape and source.strides == target.strides == contiguous_strides(
            shape
        ):
            places[value] = address_of(target) - address_of(arrays[0])
    return places
