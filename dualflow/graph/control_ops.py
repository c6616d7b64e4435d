"""The two control-flow ops: ``cond`` runs one of several graphs, and ``loop`` runs a graph repeatedly.

Their nodes have one attribute, a :class:`~dualflow.graph.control_spec.CondSpec` or
:class:`~dualflow.graph.control_spec.LoopSpec`. Their gradients trace graphs, which only the package
``function`` can: it fills :data:`COND_GRADIENT` and :data:`LOOP_GRADIENT` when it is imported.
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
from dualflow.graph.symbolic_evaluation import bound_sizes
from dualflow.graph.unequal_rows import UnequalRows
from dualflow.ops.attribute_values import in_text
from dualflow.ops.op_kinds import Cond, Loop
from dualflow.ops.record import Effect, Op
from dualflow.sizes.symbolic_sizes import bind_sizes, is_static

Array = np.ndarray[Any, Any]
JointVjp = Callable[..., Sequence[Any]]


COND_GRADIENT: Final[Slot[JointVjp]] = Slot("the gradient of cond", unfilled("the gradient of cond"))
LOOP_GRADIENT: Final[Slot[JointVjp]] = Slot("the gradient of loop", unfilled("the gradient of loop"))


def _joint_vjp_in(slot: Slot[JointVjp]) -> JointVjp:
    """A joint vjp that calls the function in ``slot``, which is filled later."""
    return lambda *args, **attrs: slot.value(*args, **attrs)


def _infer_cond(index: TensorSpec, *operands: TensorSpec, cond: CondSpec) -> tuple[TensorSpec, ...]:
    if index.shape or not index.dtype.is_integer:
        raise InvalidArgumentError(f"a branch is chosen by an integer scalar, not {index}.")
    first, *others = [[v.spec for v in branch.outputs] for branch in cond.branches]
    for specs in others:
        if specs != first:  # sizes that differ between branches are dynamic
            first = [
                TensorSpec.of(a.shape.most_specific_compatible_shape(b.shape), a.dtype)
                for a, b in zip(first, specs, strict=True)
            ]
    return tuple(first)


def _run_cond(index: Array, *operands: Array, cond: CondSpec) -> tuple[Array, ...]:
    number, branches = int(index), cond.branches
    return tuple(evaluate(branches[number if 0 <= number < len(branches) else -1], operands))


COND: Final = in_text(
    Op(
        name="cond",
        doc="The results of one of several branches, by index; an index out of range selects the last.",
        infer=_infer_cond,
        kernel=_run_cond,
        kind=Cond(),
        joint_vjp=_joint_vjp_in(COND_GRADIENT),
        outputs=None,
        effect=Effect.INSIDE,
    )
)


def _infer_loop(*specs: TensorSpec, loop: LoopSpec) -> tuple[TensorSpec, ...]:
    row_specs = [v.spec for v in loop.stacked]
    carried = [
        v.spec for v in loop.split_inputs(loop.body.inputs).carried
    ]  # iterations may change its dynamic sizes
    return (*carried, *[TensorSpec.of(Shape((loop.iterations, *r.shape)), r.dtype) for r in row_specs])


def _run_loop(*arrays: Array, loop: LoopSpec) -> tuple[Array, ...]:
    if loop.condition is not None:
        return _run_while(loop, loop.condition, arrays)
    carried, scanned, invariants = loop.split_inputs(arrays)
    count = loop.length if loop.length is not None else len(scanned[0])
    stacks: list[Any] = [
        np.empty((count, *v.spec.shape), v.spec.dtype.dtype) if is_static(v.spec.shape) else [None] * count
        for v in loop.stacked
    ]
    for t in reversed(range(count)) if loop.reverse else range(count):
        results = evaluate(loop.body, [*carried, *[x[t, ...] for x in scanned], *invariants])
        carried, row_of_each = loop.split_results(results)
        for stack, row in zip(stacks, row_of_each, strict=True):
            stack[t] = row
    rows = zip(loop.stacked, stacks, strict=True)
    return (*carried, *[_stacked(v.spec, stack) if type(stack) is list else stack for v, stack in rows])


def _run_while(loop: LoopSpec, condition: Graph, arrays: Sequence[Array]) -> tuple[Array, ...]:
    carried, _, invariants = loop.split_inputs(arrays)
    rows: list[Sequence[Array]] = []
    iterations = 0
    try:
        while (loop.length is None or iterations < loop.length) and bool(
            evaluate(condition, [*carried, *invariants])[0]
        ):
            results = evaluate(loop.body, [*carried, *invariants])
            carried, row_of_each = loop.split_results(results)
            rows.append(row_of_each)
            iterations += 1
        return (*carried, *[_stacked(v.spec, [row[i] for row in rows]) for i, v in enumerate(loop.stacked)])
    except MemoryError:
        row_bytes = sum(a.nbytes for a in rows[0]) if rows else 0
        rows.clear()
        raise ResourceExhaustedError(memory_message(row_bytes)) from None


def _stacked(spec: TensorSpec, rows: Sequence[Array]) -> Any:
    """The rows stacked to one array; an :class:`UnequalRows` if they differ in size."""
    if not rows:
        shape = bind_sizes(tuple(spec.shape), bound_sizes() or {})
        return np.empty((0, *[size or 0 for size in shape]), spec.dtype.dtype)
    if any(row.shape != rows[0].shape for row in rows):
        return UnequalRows(rows)
    return np.stack(rows)


def memory_message(row_bytes: int) -> str:
    """The error message if the rows that a loop stacks don't fit into memory."""
    return (
        f"memory is full: a loop stores {row_bytes} bytes of every iteration for its gradient. Bound the "
        "loop with maximum_iterations, or carry less."
    )


LOOP: Final = in_text(
    Op(
        name="loop",
        doc="Runs a body per row, or while a condition holds; returns carried values and stacked outputs.",
        infer=_infer_loop,
        kernel=_run_loop,
        kind=Loop(),
        joint_vjp=_joint_vjp_in(LOOP_GRADIENT),
        outputs=None,
        effect=Effect.INSIDE,
    )
)


def run_cond(index: Any, operands: Sequence[Any], branches: Sequence[Graph]) -> list[Any]:
    """Run a cond on tensors by the current engine; returns its results."""
    attrs = {"cond": CondSpec(tuple(branches))}
    return list(dispatch.current().run(COND, (index, *operands), attrs))


def run_loop(loop: LoopSpec, inputs: Sequence[Any]) -> list[Any]:
    """Run a loop on tensors by the current engine; returns its results."""
    return list(dispatch.current().run(LOOP, tuple(inputs), {"loop": loop}))
