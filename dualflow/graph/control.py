"""The two ops of control flow: a conditional between graphs, and a graph that runs again and again.

What a node of theirs does is its one attribute, a :class:`~dualflow.graph.control_spec.CondSpec` or
:class:`~dualflow.graph.control_spec.LoopSpec`. Their gradients trace graphs, which only the room of traced
functions can: it fills :data:`COND_GRADIENT` and :data:`LOOP_GRADIENT` when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError, ResourceExhaustedError
from dualflow.core.shape import Shape
from dualflow.core.slot import Slot, unfilled
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import CondSpec, LoopSpec
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph
from dualflow.graph.unequal_rows import UnequalRows
from dualflow.ops.op_kinds import Cond, Loop
from dualflow.ops.record import Effect, Op

Array = np.ndarray[Any, Any]
JointVjp = Callable[..., Sequence[Any]]


COND_GRADIENT: Final[Slot[JointVjp]] = Slot(
    "the gradient of conditional", unfilled("the gradient of conditional")
)
LOOP_GRADIENT: Final[Slot[JointVjp]] = Slot("the gradient of loop", unfilled("the gradient of loop"))


def _joint_vjp_in(slot: Slot[JointVjp]) -> JointVjp:
    """The joint vjp that ``slot`` has when it is called."""
    return lambda *args, **attrs: slot.value(*args, **attrs)


def _infer_cond(index: TensorSpec, *operands: TensorSpec, cond: CondSpec) -> tuple[TensorSpec, ...]:
    if index.shape or not index.dtype.is_integer:
        raise InvalidArgumentError(f"a branch is chosen by an integer scalar, not {index}.")
    first, *others = [[v.spec for v in branch.outputs] for branch in cond.branches]
    for specs in others:
        if specs != first:  # sizes in which branches differ are open
            first = [
                TensorSpec.of(a.shape.most_specific_compatible_shape(b.shape), a.dtype)
                for a, b in zip(first, specs, strict=True)
            ]
    return tuple(first)


def _run_cond(index: Array, *operands: Array, cond: CondSpec) -> tuple[Array, ...]:
    at, branches = int(index), cond.branches
    return tuple(evaluate(branches[at if 0 <= at < len(branches) else -1], operands))


COND: Final = Op(
    name="cond",
    doc="The results of one of several graphs, by an index; one that is out of range takes the last.",
    infer=_infer_cond,
    kernel=_run_cond,
    kind=Cond(),
    joint_vjp=_joint_vjp_in(COND_GRADIENT),
    outputs=None,
    effect=Effect.INSIDE,
)


def _infer_loop(*specs: TensorSpec, loop: LoopSpec) -> tuple[TensorSpec, ...]:
    rows = [v.spec for v in loop.stacked]
    carried = [
        v.spec for v in loop.body.inputs[: loop.carried]
    ]  # iterations may change sizes that it leaves open
    return (*carried, *[TensorSpec.of(Shape((loop.iterations, *r.shape)), r.dtype) for r in rows])


def _run_loop(*arrays: Array, loop: LoopSpec) -> tuple[Array, ...]:
    if loop.condition is not None:
        return _run_while(loop, loop.condition, arrays)
    carry, given, rest = loop.parts(arrays)
    count = loop.length if loop.length is not None else len(given[0])
    stacks: list[Any] = [
        np.empty((count, *v.spec.shape), v.spec.dtype.dtype) if v.spec.shape.is_static else [None] * count
        for v in loop.stacked
    ]
    for t in reversed(range(count)) if loop.reverse else range(count):
        found = evaluate(loop.body, [*carry, *[x[t, ...] for x in given], *rest])
        carry = found[: loop.carried]
        for stack, row in zip(stacks, found[loop.carried :], strict=True):
            stack[t] = row
    rows = zip(loop.stacked, stacks, strict=True)
    return (*carry, *[_stacked(v.spec, stack) if type(stack) is list else stack for v, stack in rows])


def _run_while(loop: LoopSpec, condition: Graph, arrays: Sequence[Array]) -> tuple[Array, ...]:
    carry, _, rest = loop.parts(arrays)
    kept: list[Sequence[Array]] = []
    iterations = 0
    try:
        while (loop.length is None or iterations < loop.length) and bool(
            evaluate(condition, [*carry, *rest])[0]
        ):
            found = evaluate(loop.body, [*carry, *rest])
            carry = found[: loop.carried]
            kept.append(found[loop.carried :])
            iterations += 1
        return (*carry, *[_stacked(v.spec, [k[i] for k in kept]) for i, v in enumerate(loop.stacked)])
    except MemoryError:
        each = sum(a.nbytes for a in kept[0]) if kept else 0
        kept.clear()
        raise ResourceExhaustedError(memory_message(each)) from None


def _stacked(spec: TensorSpec, rows: Sequence[Array]) -> Any:
    """One array of rows, of which there may be none; :class:`UnequalRows` where they differ in size."""
    if not rows:
        return np.empty((0, *[size or 0 for size in spec.shape]), spec.dtype.dtype)
    if any(row.shape != rows[0].shape for row in rows):
        return UnequalRows(rows)
    return np.stack(rows)


def memory_message(each: int) -> str:
    """What is said when the rows that a loop keeps don't fit into memory."""
    return (
        f"memory is full: a loop keeps {each} bytes of every iteration for its gradient. Bound the loop with "
        "maximum_iterations, or carry less."
    )


LOOP: Final = Op(
    name="loop",
    doc="A body for each row, or while a condition holds: what it carries in the end, and its rows, stacked.",
    infer=_infer_loop,
    kernel=_run_loop,
    kind=Loop(),
    joint_vjp=_joint_vjp_in(LOOP_GRADIENT),
    outputs=None,
    effect=Effect.INSIDE,
)


def run_cond(index: Any, operands: Sequence[Any], branches: Sequence[Graph]) -> list[Any]:
    """The results of a conditional through the current engine, for its tensors."""
    attrs = {"cond": CondSpec(tuple(branches))}
    return list(dispatch.current().run(COND, (index, *operands), attrs))


def run_loop(loop: LoopSpec, inputs: Sequence[Any]) -> list[Any]:
    """The results of a loop through the current engine, for its tensors."""
    return list(dispatch.current().run(LOOP, tuple(inputs), {"loop": loop}))
