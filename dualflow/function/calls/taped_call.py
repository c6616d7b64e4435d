"""The gradient of a traced function under a tape that runs eagerly.

The trace is extended by the reverse sweep over its nodes, then partitioned into a forward graph, which also
returns the residuals, and a backward graph. The tape records the call as one op, whose joint vjp runs the
backward graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from dualflow.core import dispatch
from dualflow.core.locks import cached_attribute, imported
from dualflow.core.records import replace
from dualflow.eager.engine import EagerEngine
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.function.calls.array_ownership import device_values
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.execute import DeviceExecutable, device_results
from dualflow.function.calls.size_decisions import CallSizes, SizesOfPart
from dualflow.function.tracing.tracer import Tracer, tracing, values
from dualflow.gradient.colocation import colocated
from dualflow.gradient.sweep import Record, Records, filled, sweep
from dualflow.graph.effect_log import EffectLog
from dualflow.graph.extract import extract
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.split_forward_backward import SourceKind, split_forward_backward
from dualflow.graph.symbolic_size_ops import (
    argument_sizes,
    computes_sizes,
    first_axes,
    has_symbolic_sizes,
)
from dualflow.graph.user_rewrites import Match
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op
from dualflow.sizes.symbolic_sizes import UndecidedSize

Array = np.ndarray[Any, Any]
Cotangents = list[Value | None]


def differentiate(
    tracer: Tracer, nodes: Sequence[Node], sources: Sequence[Value], targets: Sequence[Value]
) -> tuple[list[Value], Cotangents]:
    """Extend the trace by a reverse sweep over ``nodes``.

    Returns:
        A new argument for the cotangent of each target, and the cotangent of each source, None where none
        flows.
    """
    tensor_of = tracer.tensor_of
    with tracing(tracer):
        cotangents = [tracer.cotangent(v) for v in targets]
        records: Records = [
            Record(
                colocated(n.op, n.device),
                tuple(map(tensor_of, n.inputs)),
                tuple(map(tensor_of, n.outputs)),
                dict(n.attrs),
            )
            for n in nodes
        ]
        flows = sweep(records, [tensor_of(v) for v in targets], cotangents, [tensor_of(v) for v in sources])
        return values(cotangents), [None if g is None else tracer.lift(g)._value for g in flows]


class ForwardBackward:
    """A graph and its gradient with respect to some of its inputs, as a forward and a backward graph.

    Args:
        joint: computes both. Its inputs are the graph's, then a cotangent for each output that can have one;
            its outputs are the graph's, then the effect results, then the cotangents of the inputs.
        inputs: the number of the graph's inputs.
        outputs: the number of its outputs.
        effect_results: the number of results of random and Python ops that the gradient reads.
        effects: the number of nodes with effects that belong to the graph itself.
        inputs_with_cotangent: the numbers of the inputs that get a cotangent.
        outputs_with_cotangent: the numbers of the outputs that have a cotangent.
        make_traceable_backward: returns the function for :attr:`traceable_backward`.
        options: how both graphs are compiled. Rewrites of users are applied once, before the partition.
        call_sizes: for one program for all sizes, the sizes of a call, for which a memory budget is planned.

    Attributes:
        written: the inputs that are variables with updates, by number.
        matches: where rewrites of users have changed the graph.
    """

    def __init__(
        self,
        joint: Graph,
        *,
        inputs: int,
        outputs: int,
        effect_results: int,
        effects: int,
        inputs_with_cotangent: Sequence[int],
        outputs_with_cotangent: Sequence[int],
        make_traceable_backward: Callable[[], Callable[[Sequence[Any]], Sequence[Any]]],
        options: CompileOptions,
        call_sizes: CallSizes | None = None,
    ) -> None:
        self._has_planned_sizes = options.memory_budget is not None and call_sizes is not None
        if self._has_planned_sizes and computes_sizes(joint):
            raise UndecidedSize("a memory budget is planned for the sizes of arguments")
        self.matches: list[Match] = []
        pipeline = imported("dualflow.graph.passes.pipeline")
        passes = pipeline.with_rewrites(pipeline.SIMPLIFICATIONS, options.rewrites, self.matches.append)
        simplified = pipeline.optimise(joint, options, passes=passes)
        graphs = split_forward_backward(simplified, inputs, outputs + effect_results, effects)
        options = replace(options, rewrites=())
        self.forward = CompiledGraph(graphs.forward, options, call_sizes=call_sizes)
        self.written = graphs.forward.updated_inputs
        self.inputs, self.outputs, self.effect_results = inputs, outputs, effect_results
        self.inputs_with_cotangent = tuple(inputs_with_cotangent)
        self.outputs_with_cotangent = tuple(outputs_with_cotangent)
        self._backward = graphs.backward
        self._sources = graphs.sources
        self._backward_graphs: dict[tuple[int, ...], CompiledGraph] = {}
        self._make_traceable_backward = make_traceable_backward
        self._options = options
        self._call_sizes = None if call_sizes is None else _sizes_of_part(call_sizes, joint, graphs.backward)

    @cached_attribute
    def traceable_backward(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """The backward pass as ops of the current engine, so that it can be differentiated and traced.

        A function of the inputs, the effect results and the cotangents of the outputs, in one sequence. It
        returns the cotangents of the inputs :attr:`inputs_with_cotangent`.
        """
        return self._make_traceable_backward()

    @property
    def graphs(self) -> list[CompiledGraph]:
        """The forward graph, and the backward graphs created so far."""
        return [self.forward, *self._backward_graphs.values()]

    @cached_attribute
    def symbolic_graphs(self) -> list[CompiledGraph]:
        """The graphs with symbolic sizes: the forward graph, and the backward graph of all inputs."""
        _, backward = self.backward_for([True] * self.inputs)
        return [graph for graph in (self.forward, backward) if has_symbolic_sizes(graph.graph)]

    def backward_for(self, needed: Sequence[bool]) -> tuple[tuple[int, ...], CompiledGraph]:
        """The numbers of the ``needed`` inputs that get a cotangent, and the graph that computes these.

        Within a memory budget for some sizes, one graph computes the cotangents of all inputs: it is compiled
        before the call, which its guard may exclude.
        """
        numbered = enumerate(self.inputs_with_cotangent)
        outputs = tuple([k for k, i in numbered if needed[i] or self._has_planned_sizes])
        compiled = self._backward_graphs.get(outputs)
        if compiled is None:
            graph = self._backward
            effects = [n for n in graph.nodes if n.effect is not None]
            part = extract(graph, graph.arguments, [graph.outputs[k] for k in outputs], effects=effects)
            created = CompiledGraph(part, self._options, call_sizes=self._call_sizes)
            compiled = self._backward_graphs.setdefault(outputs, created)
        return tuple([self.inputs_with_cotangent[k] for k in outputs]), compiled

    def backward_arguments(
        self, inputs: Sequence[Any], cotangents: Sequence[Any], outputs: Sequence[Any], saved: Sequence[Any]
    ) -> list[Any]:
        """The arguments of the backward graph, selected from the values of a call."""
        count = self.effect_results
        tables = {
            SourceKind.INPUT: (*inputs, *cotangents),
            SourceKind.OUTPUT: (*outputs, *saved[:count]),
            SourceKind.RESIDUAL: saved[count:],
        }
        return [tables[kind][i] for kind, i in self._sources]


def _sizes_of_part(call_sizes: CallSizes, joint: Graph, part: Graph) -> SizesOfPart:
    """The sizes of a call for a part of its joint graph."""
    sources, axes = first_axes(argument_sizes(joint)), first_axes(argument_sizes(part))
    return SizesOfPart(call_sizes, {axis: sources[v] for v, axis in axes.items() if v in sources})


class TapedCall:
    """One call under a tape, which runs the forward graph, and stores what the backward graph reads.

    Attributes:
        updated: the new values of the inputs that are variables with updates.
        effect_log: the Python calls and prints of the call; None if recovery from a failure needs no log.
    """

    __slots__ = ("_pair", "_saved", "effect_log", "updated")

    def __init__(self, pair: ForwardBackward, effect_log: EffectLog | None) -> None:
        self._pair = pair
        self.effect_log = effect_log
        self._saved: list[EagerTensor] = []
        self.updated: list[EagerTensor] = []

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Run the forward graph; returns the outputs of the call."""
        forward, count, written = self._pair.forward, self._pair.outputs, self._pair.written
        if not written and self.effect_log is None:
            tensors = forward(*map(wrap, arrays))
            self._saved = list(tensors[count:])
            return [t._array for t in tensors[:count]]
        copies = [a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in arrays]
        for i in written:
            copies[i] = copies[i].copy()
        results = forward.run(copies, self.effect_log)
        self._saved = [wrap(a) for a in results[count:]]
        self.updated = [wrap(copies[i]) for i in written]
        return results[:count]

    def run_on_device(self, tensors: Sequence[EagerTensor]) -> tuple[EagerTensor, ...]:
        """Run the forward graph on the GPU; returns the outputs of the call."""
        forward, count = self._pair.forward.for_device, self._pair.outputs
        executable = cast(DeviceExecutable, forward.executable)
        outputs, self.updated = device_results(executable, device_values(tensors), self.effect_log)
        self._saved = list(outputs[count:])
        return outputs[:count]

    def vjp(self, needed: Sequence[bool], g: Any, out: Any, inputs: Sequence[Any]) -> list[Any]:
        """The cotangents of the inputs, by the compiled backward graph, or op by op if an engine records."""
        pair = self._pair
        gs, outs = filled(g, out), out if isinstance(g, tuple) else (out,)
        cotangents = [gs[i] for i in pair.outputs_with_cotangent]
        flows: list[Any] = [None] * len(inputs)
        if isinstance(dispatch.current(), EagerEngine):
            indices, backward = pair.backward_for(needed)
            computed = backward(*pair.backward_arguments(inputs, cotangents, outs, self._saved))
        else:
            effect_results = self._saved[: pair.effect_results]
            indices = pair.inputs_with_cotangent
            computed = pair.traceable_backward([*inputs, *effect_results, *cotangents])
        for index, flow in zip(indices, computed, strict=True):
            flows[index] = flow
        return flows


CALL: Final = Op(
    name="call",
    doc="A traced function, called under a tape; attrs: call, a TapedCall.",
    infer=lambda *specs, call: (),
    kernel=lambda *arrays, call: call.run(arrays),
    kind=Opaque("a call inside a trace is inlined, so no graph has this op"),
    joint_vjp=lambda needed, g, out, *inputs, call: call.vjp(needed, g, out, inputs),
    outputs=None,
    effect=Effect.PYTHON,
)
