"""Loops over elements that are read at run time, such as a dataset's; the loop body is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import cached_attribute
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure
from dualflow.eager.device_tensor import tensor_of
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import wrap
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.failed_calls import LoopHistory
from dualflow.function.calls.recorded_trace import RecordedTrace
from dualflow.function.calls.shape_variants import equal_axes
from dualflow.function.control.closures import close_over
from dualflow.function.control.trace_bodies import Body
from dualflow.function.errors import here
from dualflow.function.tracing.tracer import Tracer, tracing_lock
from dualflow.graph.effect_log import note_assigned, take_assigned
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.assignments import AssigningSpec, with_variables
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op

Array = np.ndarray[Any, Any]
Read = Callable[[], "Sequence[Array] | None"]
"""Reads the leaves of the next element; None at the end."""


class ElementSource(NamedTuple):
    """A source of elements for a loop, which reads them one after another when the graph runs.

    Attributes:
        structure: the structure of an element.
        specs: the specs of its leaves, which may have dynamic sizes.
        handles: scalars that identify the source at run time.
        open: begins to read the source with these values of the handles.
    """

    structure: Structure
    specs: tuple[TensorSpec, ...]
    handles: tuple[Any, ...]
    open: Callable[[Sequence[int]], AbstractContextManager[Read]]


@dataclass(frozen=True, eq=False)
class StreamLoop(AssigningSpec):
    """A loop over elements, the attribute of a ``stream_loop`` node.

    Attributes:
        tracer: the trace of the body.
        body: maps (carried values, leaves of an element, invariants) to the next carried values. The first
            carried value is whether there is another iteration.
        carried: the number of carried values.
        reading: the source of the elements.
        options: the compile options of the body.
        variables: the variables that the body assigns; their values are carried last.
    """

    tracer: Tracer
    body: Graph
    carried: int
    reading: ElementSource
    options: CompileOptions
    variables: tuple[Any, ...]
    _bodies: dict[tuple[Any, ...], Graph] = field(default_factory=dict, repr=False)
    _compiled: dict[tuple[Any, ...], CompiledGraph] = field(default_factory=dict, repr=False)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Run the loop; returns the final carried values."""
        first = len(self.reading.handles)
        numbers = [int(x) for x in arrays[:first]]
        carry: list[Any] = [wrap(x) for x in arrays[first : first + self.carried]]
        invariants = [wrap(x) for x in arrays[first + self.carried :]]
        try:
            with dispatch.using(EAGER), self.reading.open(numbers) as read:
                while carry[0]._array and (element := read()) is not None:
                    inputs = [*carry, *map(tensor_of, element), *invariants]
                    carry = list(self._compiled_body(element, inputs)(*inputs))
        except BaseException as error:
            values = carry[self.carried - len(self.variables) :]
            before = {id(v): (v, x._array) for v, x in zip(self.variables, values, strict=True)}
            note_assigned(error, {**before, **take_assigned(error)})
            raise
        return [x._array.copy() for x in carry]

    def with_variables(self, others: Mapping[int, Any]) -> StreamLoop:
        variables = tuple([others.get(id(v), v) for v in self.variables])
        return replace(
            self, body=with_variables(self.body, others), variables=variables, _bodies={}, _compiled={}
        )

    def _compiled_body(self, element: Sequence[Array], inputs: Sequence[Any]) -> CompiledGraph:
        """The body, compiled for elements of these shapes.

        Where carried values have dynamic sizes, it is compiled for those axes that are equal in ``inputs``.
        """
        shapes = tuple([x.shape for x in element])
        body = self._bodies.get(shapes)
        if body is None:
            with tracing_lock.lock:
                body = self._bodies[shapes] = self._specialised_body(element)
        equal = () if self._is_static else equal_axes(body, inputs)
        compiled = self._compiled.get((shapes, equal))
        if compiled is None:
            history = LoopHistory(body, lambda variable, arguments: variable)
            compiled = CompiledGraph(body, self.options, history=history, equal_axes=equal)
            compiled = self._compiled.setdefault((shapes, equal), compiled)
        return compiled.current

    def _specialised_body(self, element: Sequence[Array]) -> Graph:
        """The body with dynamic sizes replaced by those of an element."""
        if self._is_static:
            return self.body
        trace = RecordedTrace(self.tracer, self.body, self.options)
        specs = [v.spec for v in self.body.inputs]
        specs[self.carried : self.carried + len(element)] = [TensorSpec(x.shape, x.dtype) for x in element]
        return trace.with_shapes(specs).graph

    @cached_attribute
    def _is_static(self) -> bool:
        return all(v.spec.shape.is_static for v in self.body.inputs)


def _infer(*specs: TensorSpec, stream: StreamLoop) -> tuple[TensorSpec, ...]:
    """The specs of the carried values in the body: axes that are dynamic there may change in an iteration."""
    return tuple([v.spec for v in stream.body.inputs[: stream.carried]])


def _run(*arrays: Array, stream: StreamLoop) -> tuple[Array, ...]:
    return tuple(stream.run(arrays))


def _reject_gradient(needed: Sequence[bool], g: Any, out: Any, *inputs: Any, stream: StreamLoop) -> Any:
    raise InvalidArgumentError(
        "There is no gradient through a loop over a dataset, whose elements are not stored. Take the "
        f"gradient inside of the loop, for each element.{here()}"
    )


STREAM_LOOP: Final = Op(
    name="stream_loop",
    doc="The final carried values of a compiled body that runs for each element that is read.",
    infer=_infer,
    kernel=_run,
    kind=Opaque("it reads elements in Python; each iteration is compiled"),
    joint_vjp=_reject_gradient,
    outputs=None,
    effect=Effect.PYTHON,
)


def stream_node(reading: ElementSource, iteration: Body, initial: Sequence[Any]) -> list[Any]:
    """The final carried values of a loop over elements; assigned variables are carried too.

    Args:
        reading: the source of the elements.
        iteration: maps the carried values, the first of which is whether there is another iteration, and the
            leaves of an element to the next carried values.
        initial: the initial carried values, tensors of the current engine.
    """
    closure = close_over([iteration], len(initial))
    variables, read = closure.operands()
    (graph,) = closure.graphs
    count = len(initial) + len(variables)
    stream = StreamLoop(iteration.tracer, graph, count, reading, iteration.tracer.options, closure.written)
    engine = dispatch.current()
    handles = [engine.lift(x) for x in reading.handles]
    inputs = (*handles, *initial, *variables, *read)
    carried, _ = closure.assign(list(engine.run(STREAM_LOOP, inputs, {"stream": stream})))
    return carried
