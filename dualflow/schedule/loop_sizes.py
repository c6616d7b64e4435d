"""The sizes of loop-carried values that iterations change, and the number of buffers of a loop."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import LoopSpec, loop_of
from dualflow.graph.ir import Node
from dualflow.ops.op_kinds import Cond
from dualflow.schedule.planned import ChangingSize


def changing_positions(loop: LoopSpec) -> list[int]:
    """The positions of the loop-carried values whose sizes an iteration changes."""
    return [i for i, (before, after) in enumerate(loop.carried_values) if before.spec != after.spec]


def changing_sizes(loop: LoopSpec, inputs: Sequence[TensorSpec]) -> tuple[ChangingSize, ...]:
    """The sizes of loop-carried values that iterations change; ``inputs`` are the loop's input specs."""
    changing: dict[int, ChangingSize] = {}
    for i in changing_positions(loop):
        before, after = (values[i].spec.shape for values in (loop.body.inputs, loop.body.outputs))
        for start, extent, following in zip(inputs[i].shape, before, after, strict=True):
            if extent != following:
                assert extent is not None, "sizes are static or symbolic"
                assert start is not None, "sizes are static or symbolic"
                assert following is not None, "sizes are static or symbolic"
                changing[extent] = ChangingSize(extent, start, following)
    return tuple(changing.values())


def loop_buffers(node: Node) -> int:
    """The number of rows and next values of a loop, which have buffers of their own; 0 for a conditional."""
    if isinstance(node.op.kind, Cond):
        return 0
    loop = loop_of(node)
    return loop.scanned + len(loop.stacked) + len(changing_positions(loop))
