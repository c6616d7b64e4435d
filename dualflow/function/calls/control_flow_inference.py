"""Inference of sizes in conditionals and loops, where sizes that differ become size variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dualflow.core.errors import DualflowError
from dualflow.core.records import replace
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.calls.data_dependent_sizes import changed_sizes
from dualflow.function.calls.integer_values import IntegerValues
from dualflow.function.calls.ragged_stacks import (
    RaggedStack,
    counting,
    reading,
    refuse_ragged,
    rowwise,
    writing,
)
from dualflow.function.calls.recorded_body import RecordedBody
from dualflow.function.calls.size_decisions import GuardedDecisions, is_polynomial
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.control_ops import LOOP
from dualflow.graph.control_spec import CondSpec, LoopSpec, branches_of, loop_of, row_spec
from dualflow.graph.deferred_errors import deferrable, failing_branch, failing_loop_body
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.cotangent_shapes import SUM_LIKE
from dualflow.ops.creation import zeros
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import Effect
from dualflow.sizes.symbolic_sizes import (
    SizeVariable,
    UndecidedSize,
    is_static,
    size_variable,
    size_variables,
)


class BodyInference(Protocol):
    """The size inference of a graph that contains conditionals and loops.

    Attributes:
        tracer: records the nodes.
        integers: the elements of integer tensors, as expressions.
        bound: the size variables that a ``bind_size`` node has bound.
        ragged_stacks: the stacks of rows that differ in size, by the vector of their elements.
        decisions: decides comparisons of sizes.
    """

    tracer: Tracer
    integers: IntegerValues
    bound: set[SizeVariable]
    ragged_stacks: dict[Value, RaggedStack]
    decisions: GuardedDecisions

    def recorded_body(
        self,
        graph: Graph,
        specs: Sequence[TensorSpec],
        sources: Sequence[Value | None],
        stacks: Mapping[int, Value] | None = None,
    ) -> RecordedBody:
        """The body ``graph`` of a node, recorded for inputs of ``specs``."""

    def __call__(self, tensor: Any, least: int | None = None) -> list[int]:
        """The elements of an integer tensor, as expressions; with ``least`` as sizes."""


def _branches(
    inference: BodyInference,
    branches: Sequence[Graph],
    specs: Sequence[TensorSpec],
    operands: Sequence[Value],
) -> list[RecordedBody]:
    """The branches of a conditional; one that raises an error for the sizes fails when it is taken.

    Raises:
        DualflowError: no branch accepts the sizes.
    """
    bodies: list[RecordedBody | DualflowError] = []
    for branch in branches:
        try:
            bodies.append(inference.recorded_body(branch, specs, operands))
        except DualflowError as error:
            bodies.append(deferrable(error))
    valid = next((b for b in bodies if isinstance(b, RecordedBody)), None)
    if valid is None:
        raise next(error for error in bodies if isinstance(error, DualflowError))
    results = [_without_variables(v.spec) for v in valid.outputs]
    return [
        body
        if isinstance(body, RecordedBody)
        else inference.recorded_body(failing_branch(branch, specs, results, body), specs, operands)
        for branch, body in zip(branches, bodies, strict=True)
    ]


def cond_outputs(inference: BodyInference, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """Infer a conditional: a result size that differs between branches becomes a size variable."""
    operands = inputs[1:]
    specs = [v.spec for v in operands]
    bodies = _branches(inference, branches_of(node), specs, operands)
    for index in range(len(bodies[0].outputs)):
        shapes = [tuple(b.outputs[index].spec.shape) for b in bodies]
        for axis, sizes in enumerate(zip(*shapes, strict=True)):
            if any(d != sizes[0] for d in sizes) or not size_variables(sizes[0]) <= inference.bound:
                merged = size_variable(least=0)
                for body in bodies:
                    body.bind_result_size(index, axis, merged)
    for body in bodies:
        inference.bound |= body.result_variables
    spec = CondSpec(tuple([b.graph() for b in bodies]))
    return inference.tracer.builder.add(node.op, inputs, {"cond": spec}, node.origin).outputs


def loop_outputs(inference: BodyInference, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """The outputs of a loop, which may scan ragged stacks."""
    loop, inputs = _with_layouts(inference, loop_of(node), inputs)
    return _sized_loop(inference, loop, inputs, node)


def _sized_loop(
    inference: BodyInference, loop: LoopSpec, inputs: Sequence[Value], node: Node
) -> Sequence[Value]:
    """The outputs of ``loop``, that of ``node`` or one that replaces it."""
    carried, stacks, invariants = loop.split_inputs(list(inputs))
    if loop.scanned and loop.length is None and stacks[0].spec.shape[0] is not None:
        loop = replace(loop, length=stacks[0].spec.shape[0])
    carry, body, changing = _loop_body(inference, loop, carried, stacks, invariants)
    local = (body.bound | changing) - inference.bound
    rows = [
        i
        for i, v in enumerate(body.outputs)
        if i >= len(carry) and size_variables(tuple(v.spec.shape)) & local
    ]
    if rows:
        return _stacking_ragged(inference, loop, inputs, rows, node)
    condition = None
    if loop.condition is not None:
        specs = [*carry, *[v.spec for v in invariants]]
        sources = [*([None] * len(carry)), *invariants]
        condition = inference.recorded_body(loop.condition, specs, sources).graph()
    row_values = loop.split_results(body.outputs).stacked
    constant_rows = [body.integers.bound_elements(v, inference.bound) for v in row_values]
    inference.bound |= changing
    sized = replace(loop, body=body.graph(), condition=condition)
    outputs = inference.tracer.builder.add(node.op, inputs, {"loop": sized}, node.origin).outputs
    for stack, row in zip(loop.split_results(outputs).stacked, constant_rows, strict=True):
        if row is not None:
            inference.integers.rows[stack] = row
    return outputs


def _loop_body(
    inference: BodyInference,
    loop: LoopSpec,
    carried: Sequence[Value],
    stacks: Sequence[Value],
    invariants: Sequence[Value],
) -> tuple[list[TensorSpec], RecordedBody, set[SizeVariable]]:
    """The specs of carried values, the body for them, and the size variables of sizes that iterations change.

    It is a fixed point: a size of an output that differs from that of its input becomes a new size variable,
    until none differs.
    """
    carry = [v.spec for v in carried]
    row_specs = [row_spec(v.spec) for v in stacks]
    sources: list[Value | None] = [*([None] * loop.end), *invariants]
    scanned = dict(enumerate(stacks, start=loop.carried))
    changing: set[SizeVariable] = set()
    while True:
        specs = [*carry, *row_specs, *[v.spec for v in invariants]]
        try:
            body = inference.recorded_body(loop.body, specs, sources, scanned)
        except DualflowError as error:
            failing = failing_loop_body(loop.body, specs, loop.carried, deferrable(error))
            body = inference.recorded_body(failing, specs, sources)
        differing = [
            (index, axis)
            for index, axis in changed_sizes(carry, body.outputs, changing)
            if not _keeps_size(inference, carry[index].shape[axis], body.outputs[index].spec.shape[axis])
        ]
        if not differing:
            break
        for index, axis in differing:
            fresh = size_variable(least=0)
            changing |= size_variables(fresh)
            shape = list(carry[index].shape)
            shape[axis] = fresh
            carry[index] = TensorSpec.of(Shape(shape), carry[index].dtype)
    for index, spec in enumerate(carry):
        for axis, size in enumerate(spec.shape):
            if size_variables((size,)) & changing:
                body.bind_result_size(index, axis, size_variable(least=0))
            elif size != body.outputs[index].spec.shape[axis]:
                body.set_result_size(index, axis, size)
    return carry, body, changing


def _keeps_size(inference: BodyInference, before: int | None, after: int | None) -> bool:
    """Whether the expressions of a carried size before and after an iteration are equal in the call.

    The outcome is a guard: a padded slice has ``max(n - 2, 0) + 2`` elements, which are n for n from 2 on.
    Polynomials that differ are sizes that change, even if they are equal in a call.
    """
    if before is None or after is None or is_polynomial(after - before):
        return False
    try:
        return inference.decisions.equal(before, after)
    except UndecidedSize:
        return False


def _with_layouts(
    inference: BodyInference, loop: LoopSpec, inputs: Sequence[Value]
) -> tuple[LoopSpec, Sequence[Value]]:
    """``loop`` and ``inputs``, with layouts and elements in place of the ragged stacks that it scans."""
    stacks = {
        i: inference.ragged_stacks[v]
        for i, v in enumerate(inputs)
        if v in inference.ragged_stacks and loop.carried <= i < loop.end
    }
    refuse_ragged(inference.ragged_stacks, [v for i, v in enumerate(inputs) if i not in stacks])
    if not stacks:
        return loop, inputs
    layouts = [stacks[i].layouts if i in stacks else v for i, v in enumerate(inputs)]
    return reading(loop, stacks), [*layouts, *[rows.elements for rows in stacks.values()]]


def over_rows(inference: BodyInference, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """The result of an op on ragged stacks, by a loop over their rows: gradients add such stacks."""
    stacks = [v for v in dict.fromkeys(inputs) if v in inference.ragged_stacks]
    others = [v for v in dict.fromkeys(inputs) if v not in inference.ragged_stacks]
    rank = max(inference.ragged_stacks[v].spec.rank for v in stacks)
    # a sum to the shape of another tensor would be over the rows, too
    is_by_row = isinstance(node.op.kind, Elementwise) or (node.op is SUM_LIKE and not others)
    if not is_by_row or any(v.spec.rank > rank for v in others):
        refuse_ragged(inference.ragged_stacks, inputs)
    loop = rowwise(node, inputs, {v: inference.ragged_stacks[v].spec for v in stacks}, others)
    ordered = [*stacks, *others]
    return loop_outputs(inference, Node(LOOP, ordered, {"loop": loop}, node.specs, node.origin), ordered)


def _stacking_ragged(
    inference: BodyInference, loop: LoopSpec, inputs: Sequence[Value], rows: Sequence[int], node: Node
) -> Sequence[Value]:
    """The outputs of ``loop``, whose outputs ``rows`` become ragged stacks."""
    if loop.effect not in (None, Effect.CHECK):
        raise UndecidedSize("the rows that a loop with effects stacks differ in size")
    carried, others = inputs[: loop.carried], inputs[loop.carried :]
    zero = inference.tracer.lift(inference.tracer.constant(np.zeros((), np.int64)))._value
    counts = _sized_loop(inference, counting(loop, rows), [*carried, *[zero] * len(rows), *others], node)
    vectors = []
    for i, count in zip(rows, counts[loop.carried :], strict=True):
        dtype = loop.body.outputs[i].spec.dtype
        shape = Shape(inference(inference.tracer.tensor_of(count), 0))
        vectors += [zero, inference.tracer.lift(zeros(shape, dtype))._value]
    results = _sized_loop(inference, writing(loop, rows), [*carried, *vectors, *others], node)
    end = loop.carried + len(vectors)
    stacks = iter(results[end : len(results) - len(rows)])
    outputs = [*results[: loop.carried]]
    for i, v in enumerate(loop.stacked, start=loop.carried):
        if i not in rows:
            outputs.append(next(stacks))
            continue
        k = rows.index(i)
        elements, layouts = results[loop.carried + 2 * k + 1], results[len(results) - len(rows) + k]
        inference.ragged_stacks[elements] = RaggedStack(elements, layouts, v.spec)
        outputs.append(elements)
    return outputs


def _without_variables(spec: TensorSpec) -> TensorSpec:
    """``spec`` with 0 for the sizes that are known only at run time."""
    return TensorSpec.of(Shape([n if is_static((n,)) else 0 for n in spec.shape]), spec.dtype)
