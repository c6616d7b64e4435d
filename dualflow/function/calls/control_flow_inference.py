"""Inference of sizes in conditionals and loops, where sizes that differ become size variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.errors import DualflowError
from dualflow.core.records import replace
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.calls.data_dependent_sizes import changed_sizes
from dualflow.function.calls.integer_values import IntegerValues
from dualflow.function.calls.ragged_stacks import RaggedStack, counting, reading, rowwise, writing
from dualflow.function.calls.recorded_body import RecordedBody
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.control_ops import LOOP
from dualflow.graph.control_spec import CondSpec, LoopSpec, branches_of, loop_of
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

NO_VALUES: Final[Mapping[Value, Value]] = {}


class ControlFlowInference:
    """The part of :class:`~dualflow.function.calls.size_inference.SizeInference` for bodies of nodes.

    Attributes:
        tracer: records the nodes.
        integers: the elements of integer tensors, as expressions.
        bound: the size variables that a ``bind_size`` node has bound.
        ragged_stacks: the stacks of rows that differ in size, by the vector of their elements.
        iterates: whether it records the body of a loop.
    """

    def __init__(self, tracer: Tracer, outer: Any = None) -> None:
        self.tracer = tracer
        self.integers = IntegerValues()
        self.bound: set[SizeVariable] = set() if outer is None else set(outer.bound)
        self.ragged_stacks: dict[Value, RaggedStack] = {}
        self.iterates = False

    def record(
        self, nodes: Sequence[Node], inputs: Mapping[Value, Value], later: Mapping[Value, Value] = NO_VALUES
    ) -> dict[Value, Value]:
        """Record copies of ``nodes`` that compute from ``inputs``; returns the copy of each value."""
        raise NotImplementedError

    def __call__(self, tensor: Any, least: int | None = None) -> list[int]:
        """The elements of an integer tensor, as expressions; with ``least`` as sizes."""
        raise NotImplementedError

    def recorded_body(
        self,
        graph: Graph,
        specs: Sequence[TensorSpec],
        sources: Sequence[Value | None],
        stacks: Mapping[int, Value] | None = None,
    ) -> RecordedBody:
        """The body ``graph`` of a node, recorded for inputs of ``specs``.

        ``sources`` has, for each input that is the same in all iterations, the value outside of the body;
        None for others. ``stacks``, in a loop, has the stacks of the inputs that are rows, by the index of
        the input.
        """
        inner = type(self)(Tracer(graph.name), self)
        inner.iterates = stacks is not None
        with tracing(inner.tracer):
            inputs = [inner.tracer.builder.argument(spec) for spec in specs]
            for value, source in zip(inputs, sources, strict=True):
                if source is not None:
                    inner.integers.copy_elements(value, self.integers, source, self.bound)
            for i, stack in (stacks or {}).items():
                inner.integers.read_row(inputs[i], self.integers, stack)
            recorded = inner.record(graph.nodes, dict(zip(graph.inputs, inputs, strict=True)))
        outputs = [recorded[v] for v in graph.outputs]
        inner.refuse_ragged(outputs)
        return RecordedBody(inner.tracer.builder, inner.bound, graph.name, inputs, outputs, inner.integers)

    def _branches(
        self, branches: Sequence[Graph], specs: Sequence[TensorSpec], operands: Sequence[Value]
    ) -> list[RecordedBody]:
        """The branches of a conditional; one that raises an error for the sizes fails when it is taken.

        Raises:
            DualflowError: no branch accepts the sizes.
        """
        bodies: list[RecordedBody | DualflowError] = []
        for branch in branches:
            try:
                bodies.append(self.recorded_body(branch, specs, operands))
            except DualflowError as error:
                bodies.append(deferrable(error))
        valid = next((b for b in bodies if isinstance(b, RecordedBody)), None)
        if valid is None:
            raise next(error for error in bodies if isinstance(error, DualflowError))
        results = [_without_variables(v.spec) for v in valid.outputs]
        return [
            body
            if isinstance(body, RecordedBody)
            else self.recorded_body(failing_branch(branch, specs, results, body), specs, operands)
            for branch, body in zip(branches, bodies, strict=True)
        ]

    def cond_outputs(self, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
        """Infer a conditional: a result size that differs between branches becomes a size variable."""
        operands = inputs[1:]
        specs = [v.spec for v in operands]
        bodies = self._branches(branches_of(node), specs, operands)
        for index in range(len(bodies[0].outputs)):
            shapes = [tuple(b.outputs[index].spec.shape) for b in bodies]
            for axis, sizes in enumerate(zip(*shapes, strict=True)):
                if any(d != sizes[0] for d in sizes) or not size_variables(sizes[0]) <= self.bound:
                    merged = size_variable(least=0)
                    for body in bodies:
                        body.bind_result_size(index, axis, merged)
        for body in bodies:
            self.bound |= body.result_variables
        spec = CondSpec(tuple([b.graph() for b in bodies]))
        return self.tracer.builder.add(node.op, inputs, {"cond": spec}, node.origin).outputs

    def loop_outputs(self, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
        """The outputs of a loop, which may scan unequal rows."""
        loop, inputs = self._with_places(loop_of(node), inputs)
        return self._sized_loop(loop, inputs, node)

    def _sized_loop(self, loop: LoopSpec, inputs: Sequence[Value], node: Node) -> Sequence[Value]:
        """The outputs of ``loop``, that of ``node`` or one that replaces it.

        Each size that iterations change is a new size variable in the body.
        """
        carried, stacks, invariants = loop.parts(list(inputs))
        if loop.scanned and loop.length is None and stacks[0].spec.shape[0] is not None:
            loop = replace(loop, length=stacks[0].spec.shape[0])
        carry = [v.spec for v in carried]
        row_specs = [TensorSpec.of(Shape(tuple(v.spec.shape)[1:]), v.spec.dtype) for v in stacks]
        sources: list[Value | None] = [*([None] * loop.end), *invariants]
        scanned = dict(enumerate(stacks, start=loop.carried))
        changing: set[SizeVariable] = set()
        while True:
            specs = [*carry, *row_specs, *[v.spec for v in invariants]]
            try:
                body = self.recorded_body(loop.body, specs, sources, scanned)
            except DualflowError as error:
                failing = failing_loop_body(loop.body, specs, loop.carried, deferrable(error))
                body = self.recorded_body(failing, specs, sources)
            differing = changed_sizes(carry, body.outputs, changing)
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
        local = (body.bound | changing) - self.bound
        rows = [
            i
            for i, v in enumerate(body.outputs)
            if i >= len(carry) and size_variables(tuple(v.spec.shape)) & local
        ]
        if rows:
            return self._stacking_ragged(loop, inputs, rows, node)
        condition = None
        if loop.condition is not None:
            specs = [*carry, *[v.spec for v in invariants]]
            condition = self.recorded_body(
                loop.condition, specs, [*([None] * len(carry)), *invariants]
            ).graph()
        constant_rows = [body.integers.bound_elements(v, self.bound) for v in body.outputs[loop.carried :]]
        self.bound |= changing
        sized = replace(loop, body=body.graph(), condition=condition)
        outputs = self.tracer.builder.add(node.op, inputs, {"loop": sized}, node.origin).outputs
        for stack, row in zip(outputs[loop.carried :], constant_rows, strict=True):
            if row is not None:
                self.integers.rows[stack] = row
        return outputs

    def _with_places(self, loop: LoopSpec, inputs: Sequence[Value]) -> tuple[LoopSpec, Sequence[Value]]:
        """``loop`` and ``inputs`` with the places and elements of rows, where it scans unequal ones."""
        stacks = {
            i: self.ragged_stacks[v]
            for i, v in enumerate(inputs)
            if v in self.ragged_stacks and loop.carried <= i < loop.end
        }
        self.refuse_ragged([v for i, v in enumerate(inputs) if i not in stacks])
        if not stacks:
            return loop, inputs
        places = [stacks[i].places if i in stacks else v for i, v in enumerate(inputs)]
        return reading(loop, stacks), [*places, *[rows.elements for rows in stacks.values()]]

    def over_rows(self, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
        """The result of an op on stacks of unequal rows, by a loop over these: gradients add such stacks."""
        stacks = [v for v in dict.fromkeys(inputs) if v in self.ragged_stacks]
        others = [v for v in dict.fromkeys(inputs) if v not in self.ragged_stacks]
        rank = max(self.ragged_stacks[v].spec.rank for v in stacks)
        # a sum to the shape of another tensor would be over the rows, too
        is_by_row = isinstance(node.op.kind, Elementwise) or (node.op is SUM_LIKE and not others)
        if not is_by_row or any(v.spec.rank > rank for v in others):
            self.refuse_ragged(inputs)
        loop = rowwise(node, inputs, {v: self.ragged_stacks[v].spec for v in stacks}, others)
        ordered = [*stacks, *others]
        return self.loop_outputs(Node(LOOP, ordered, {"loop": loop}, node.specs, node.origin), ordered)

    def refuse_ragged(self, values: Sequence[Value]) -> None:
        """Raise an error if one of ``values`` is a stack of rows that differ in size: only loops scan it."""
        if any(v in self.ragged_stacks for v in values):
            raise UndecidedSize("the rows that a loop stacks differ in size")

    def _stacking_ragged(
        self, loop: LoopSpec, inputs: Sequence[Value], rows: Sequence[int], node: Node
    ) -> Sequence[Value]:
        """The outputs of ``loop``, whose outputs ``rows`` become ragged stacks."""
        if loop.effect not in (None, Effect.CHECK):
            raise UndecidedSize("the rows that a loop with effects stacks differ in size")
        carried, others = inputs[: loop.carried], inputs[loop.carried :]
        zero = self.tracer.lift(self.tracer.constant(np.zeros((), np.int64)))._value
        counts = self._sized_loop(counting(loop, rows), [*carried, *[zero] * len(rows), *others], node)
        vectors = []
        for i, count in zip(rows, counts[loop.carried :], strict=True):
            dtype = loop.body.outputs[i].spec.dtype
            shape = Shape(self(self.tracer.tensor_of(count), 0))
            vectors += [zero, self.tracer.lift(zeros(shape, dtype))._value]
        results = self._sized_loop(writing(loop, rows), [*carried, *vectors, *others], node)
        end = loop.carried + len(vectors)
        stacks = iter(results[end : len(results) - len(rows)])
        outputs = [*results[: loop.carried]]
        for i, v in enumerate(loop.stacked, start=loop.carried):
            if i not in rows:
                outputs.append(next(stacks))
                continue
            k = rows.index(i)
            elements, places = results[loop.carried + 2 * k + 1], results[len(results) - len(rows) + k]
            self.ragged_stacks[elements] = RaggedStack(elements, places, v.spec)
            outputs.append(elements)
        return outputs


def _without_variables(spec: TensorSpec) -> TensorSpec:
    """``spec`` with 0 for the sizes that are known only at run time."""
    return TensorSpec.of(Shape([n if is_static((n,)) else 0 for n in spec.shape]), spec.dtype)
