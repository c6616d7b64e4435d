"""The joint vjp of a loop: a loop over the iterations in reverse order, which scans their residuals.

The body is traced together with its vjp into a joint graph, which is partitioned as for a function under a
tape. The forward graph is the body of a loop over the same inputs that also stacks the residuals; a pass
merges it with the original loop. The backward graph is the body of the reverse loop. Both are ordinary loops,
so that gradients of every order exist.

A loop that draws random numbers or calls Python can't run a second time. Its node in the trace gets the
residuals as further results instead, which no tape has recorded: so there are first derivatives only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple, replace
from dualflow.core.spec import TensorSpec
from dualflow.eager.tape import GradientTape, apply_vjp
from dualflow.function.control import loop_checkpointing
from dualflow.function.control.trace_bodies import traced, tracer_of
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.graph.control_ops import LOOP, run_loop
from dualflow.graph.control_spec import LoopSpec, loop_of, row_spec
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import SIMPLIFICATIONS, optimise
from dualflow.graph.split_forward_backward import (
    ForwardBackwardGraphs,
    Source,
    SourceKind,
    nodes_with_effects,
    split_forward_backward,
)
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import ASSIGNED_VALUE
from dualflow.ops.creation import zeros_like
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.op_kinds import Decompose
from dualflow.ops.record import Effect

Tensors = list[Any]


class _ActiveLoop(NamedTuple):
    """A loop and its inputs, with the indices of those inputs and outputs that have a cotangent.

    Attributes:
        loop: the loop.
        inputs: its inputs.
        carried: the carried values with a cotangent, as inputs and as outputs.
        scanned: the scanned inputs with a cotangent.
        invariants: the invariants with a cotangent.
        targets: the outputs with a cotangent: ``carried``, then stacked outputs.
        node: the loop's node, if its effects prevent a second run; else None.
    """

    loop: LoopSpec
    inputs: tuple[Any, ...]
    carried: tuple[int, ...]
    scanned: tuple[int, ...]
    invariants: tuple[int, ...]
    targets: tuple[int, ...]
    node: Node | None

    @property
    def sources(self) -> tuple[int, ...]:
        """The inputs with a cotangent."""
        return (*self.carried, *self.scanned, *self.invariants)


def loop_vjp(needed: Sequence[bool], g: Any, out: Any, *inputs: Any, loop: LoopSpec) -> Tensors:
    """The cotangents of the inputs, by a loop in the reverse order."""
    gs = g if isinstance(g, tuple) else (g,)
    sources = [i for i, x in enumerate(inputs) if needed[i] and x.dtype.is_inexact]
    carried = _carried_with_cotangent(loop, sources)
    inexact = [i for i, v in enumerate(loop.body.outputs) if v.spec.dtype.is_inexact]
    stacked = [i for i in inexact if i >= loop.carried and gs[i] is not None]
    cotangents: Tensors = [None] * len(inputs)
    if not sources or not (stacked or any(gs[i] is not None for i in carried)):
        return cotangents
    node = _node_to_extend(loop, out)
    if node is not None:  # another gradient may have added stacks
        loop, added = loop_of(node), len(node.outputs) - len(gs)
        gs = (*gs, *[None] * added)
    active = _ActiveLoop(
        loop,
        inputs,
        carried,
        scanned=tuple(i for i in sources if loop.carried <= i < loop.end),
        invariants=tuple(i for i in sources if i >= loop.end),
        targets=(*carried, *stacked),
        node=node,
    )
    options = tracer_of(dispatch.current()).options
    graphs = _forward_backward(active, options)
    residuals = _residuals(loop, graphs)
    # residuals whose sizes differ between iterations can't be stacked
    if _computes_sizes(loop.body) and any(
        not v.spec.shape.is_static for (kind, _), v in residuals.items() if kind is SourceKind.RESIDUAL
    ):
        if node is not None:
            raise _repetition_error(loop)
        loop = replace(loop, recompute=True)
        active = active._replace(loop=loop)
        graphs = _forward_backward(active, options)
        residuals = _residuals(loop, graphs)
    iterations = None if node is not None else _segment_length(loop, residuals, options)
    if iterations is None:
        results = _backward_loop(active, graphs, _stacked_residuals(active, graphs, residuals), gs, out)
    else:
        results = _in_segments(active, iterations, gs)
    for i, cotangent in zip((*carried, *active.invariants, *active.scanned), results, strict=True):
        cotangents[i] = cotangent
    return cotangents


def _computes_sizes(graph: Graph) -> bool:
    """Whether a body computes sizes that may differ between iterations."""
    return any(
        isinstance(n.op.kind, Decompose) or any(_computes_sizes(b) for _, b in n.bodies) for n in graph.nodes
    )


_REPEATABLE: Final = (None, Effect.CHECK, Effect.ASSIGN)


def _once_only(loop: LoopSpec) -> Node | None:
    """A node of the loop with an effect that a second run of the loop would repeat."""
    nodes = (n for graph in reversed(loop.graphs) for n in graph.nodes)
    return next((n for n in nodes if n.effect not in _REPEATABLE), None)


def _node_to_extend(loop: LoopSpec, out: Any) -> Node | None:
    """The node of a loop that can't run again, to which residuals are added; None for other loops.

    Raises:
        InvalidArgumentError: the node is in a trace that has ended, or a tape records the gradient, which
            would lack the derivatives of the residuals.
    """
    if _once_only(loop) is None:
        return None
    engine = dispatch.current()
    first = out[0] if isinstance(out, tuple) else out
    node: Node | None = first._value.node if isinstance(first, SymbolicTensor) else None
    is_open = node is not None and node.op is LOOP and node in tracer_of(engine).builder.nodes
    if not is_open or engine is not engine.innermost or loop.recompute:
        raise _repetition_error(loop)
    return node


def _repetition_error(loop: LoopSpec) -> InvalidArgumentError:
    node = _once_only(loop)
    assert node is not None, "the loop has an effect"
    where = f"\n  {node.origin}" if node.origin else ""
    return InvalidArgumentError(
        f"A loop that runs {node.op.name} in each iteration can't be run again for its second "
        "derivative, nor to save memory; draw random numbers or call Python before the loop, and index the "
        f"results inside.{where}"
    )


def _extended(node: Node, loop: LoopSpec) -> Tensors:
    """The results of a loop's node in the current trace, after it has become ``loop`` with more stacks."""
    tracer = tracer_of(dispatch.current())
    specs: Any = LOOP.infer(*[v.spec for v in node.inputs], loop=loop)
    node.attrs = {"loop": loop}
    added = [Value(specs[i], node, i) for i in range(len(node.outputs), len(specs))]
    node.outputs = (*node.outputs, *added)
    return [SymbolicTensor(v, tracer) for v in node.outputs]


def _carried_with_cotangent(loop: LoopSpec, sources: Sequence[int]) -> tuple[int, ...]:
    """The carried values that depend, in some iteration, on one of the inputs ``sources``."""
    body, carried = loop.body, loop.carried
    reached = {body.inputs[i] for i in sources}
    while True:
        for node in body.nodes:
            if not reached.isdisjoint(node.inputs):
                reached.update(node.outputs)
        more = {
            body.inputs[i]
            for i in range(carried)
            if body.outputs[i] in reached and body.outputs[i].spec.dtype.is_inexact
        }
        if more <= reached:
            return tuple(i for i in range(carried) if body.inputs[i] in reached)
        reached |= more


def _forward_backward(active: _ActiveLoop, options: CompileOptions) -> ForwardBackwardGraphs:
    """The joint graph of the body and its vjp, partitioned into a forward and a backward graph."""
    loop = active.loop
    count = len(loop.body.inputs)

    def body_and_vjp(*tensors: Any) -> Tensors:
        values, cotangents = tensors[:count], tensors[count:]
        sources = [values[i] for i in active.sources]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = replay(loop.body, values)
        targets = [results[i] for i in active.targets]
        weights = [conj(c) for c in cotangents]
        source_cotangents = apply_vjp(tape, targets, weights, sources)
        return [*results, *[conj(x) for x in source_cotangents]]

    specs = [_spec(v) for v in (*loop.body.inputs, *[loop.body.outputs[i] for i in active.targets])]
    joint = traced(body_and_vjp, specs)
    # Dynamic sizes are simplified for a call; derivatives of higher order read custom gradients, and
    # those of assigned values.
    if all(v.spec.shape.is_static for v in joint.inputs) and not _has_custom_gradient(joint):
        joint = optimise(joint, options, passes=SIMPLIFICATIONS)
    available = joint.inputs[0 if loop.recompute else loop.end : count]
    effects = 0 if active.node is None else len(nodes_with_effects(loop.body))
    return split_forward_backward(joint, count, len(loop.body.outputs), effects, available)


def _has_custom_gradient(graph: Graph) -> bool:
    """Whether ``graph`` or a body has values with gradients of their own, which simpler ones would lack."""
    if not graph.ops.isdisjoint((CUSTOM, ASSIGNED_VALUE)):
        return True
    return any(_has_custom_gradient(body) for node in graph.nodes for _, body in node.bodies)


def _residuals(loop: LoopSpec, graphs: ForwardBackwardGraphs) -> dict[Source, Value]:
    """The residuals: values of an iteration that the backward loop reads and the loop doesn't stack."""
    forward, carried, count = graphs.forward, loop.carried, len(loop.body.outputs)
    before = [i for kind, i in graphs.sources if kind is SourceKind.INPUT and i < carried]
    if not before and loop.iterations is None and not loop.scanned:  # a stack has the number of iterations
        before = [min(range(carried), key=lambda i: _bytes(loop.body.inputs[i].spec))]
    after = [i for kind, i in graphs.sources if kind is SourceKind.OUTPUT and i < carried]
    computed = range(len(forward.outputs) - count)
    return {
        **{(SourceKind.INPUT, i): forward.inputs[i] for i in before},
        **{(SourceKind.OUTPUT, i): forward.outputs[i] for i in after},
        **{(SourceKind.RESIDUAL, k): forward.outputs[count + k] for k in computed},
    }


def _bytes(spec: TensorSpec) -> float:
    return spec.nbytes if spec.shape.is_static else math.inf


def _segment_length(loop: LoopSpec, residuals: dict[Source, Value], options: CompileOptions) -> int | None:
    """The number of iterations to recompute at a time; None if the residuals of all fit into the budget.

    The square root rule: the sum of the residuals of one segment and the checkpoints of all segments is least
    if the two are equal. (Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost",
    2016.)
    """
    if not all(v.spec.shape.is_static for v in (*residuals.values(), *loop.body.inputs)):
        return None  # the program for symbolic sizes decides for each call
    each = sum(v.spec.nbytes for v in residuals.values())
    budget = options.loop_budget
    if loop.recompute or not each or (loop.condition is None and loop.length is None):
        return None
    if loop.condition is not None and loop.stacked:
        return None
    start = max(1, sum(v.spec.nbytes for v in loop.split_inputs(loop.body.inputs).carried))
    if loop.length is None:
        return max(1, budget // (2 * each)) if options.kept_by_loops is not None else None
    if loop.length * each <= budget:
        return None
    iterations = math.ceil(math.sqrt(loop.length * start / each))
    return iterations if iterations < loop.length else None


def _in_segments(active: _ActiveLoop, iterations: int, gs: Sequence[Any]) -> Tensors:
    """The cotangents of the carried values, invariants and scanned inputs, by checkpointing.

    The loop runs in segments of ``iterations`` iterations.
    """
    order = (*active.carried, *active.invariants, *active.scanned)
    sources = [active.inputs[i] for i in order]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(sources)
        results = loop_checkpointing.run_in_segments(active.loop, active.inputs, iterations)
    indices = [i for i in active.targets if gs[i] is not None]
    targets, weights = [results[i] for i in indices], [conj(gs[i]) for i in indices]
    return [conj(x) for x in apply_vjp(tape, targets, weights, sources)]


def _stacked_residuals(
    active: _ActiveLoop, graphs: ForwardBackwardGraphs, residuals: dict[Source, Value]
) -> dict[Source, Any]:
    """Run the loop with its residuals as further stacked outputs; returns the stacks by source."""
    loop = active.loop
    forward, carried, count = graphs.forward, loop.carried, len(loop.body.outputs)
    stacked: list[Source] = [(SourceKind.OUTPUT, i) for i in range(carried, count)]
    if not residuals and not any(source in stacked for source in graphs.sources):
        return {}
    graph = replace(forward, outputs=(*forward.outputs[:count], *residuals.values()))
    extended = loop.with_more_stacks(graph)
    node = active.node
    results = run_loop(extended, active.inputs) if node is None else _extended(node, extended)
    return dict(zip([*stacked, *residuals], results[carried:], strict=True))


class _BackwardInputs(NamedTuple):
    """The inputs of a backward loop, and which of them the backward graph reads.

    Attributes:
        carry: the cotangents of the carried values, then zeros, to which those of invariants are added.
        scanned: the cotangents of stacked outputs, stacked residuals, and scanned inputs of the loop.
        invariants: inputs of the loop that are equal in all iterations.
        positions: the position, among all of these, of each argument of the backward graph.
    """

    carry: Tensors
    scanned: Tensors
    invariants: Tensors
    positions: list[int]


def _backward_inputs(
    active: _ActiveLoop,
    graphs: ForwardBackwardGraphs,
    stacks: dict[Source, Any],
    gs: Sequence[Any],
    out: Any,
) -> _BackwardInputs:
    loop, inputs = active.loop, active.inputs
    count, carried = len(loop.body.inputs), len(active.carried)
    results = out if isinstance(out, tuple) else (out,)
    carry = [gs[i] if gs[i] is not None else zeros_like(results[i]) for i in active.carried]
    carry += [zeros_like(inputs[i]) for i in active.invariants]
    scanned = [gs[i] for i in active.targets[carried:]]
    invariants: Tensors = []
    fields: list[tuple[str, int]] = []  # the field and the index of each argument of the backward graph
    for source in graphs.sources:
        kind, i = source
        if source in stacks or (kind is SourceKind.INPUT and loop.carried <= i < loop.end):
            fields.append(("scanned", len(scanned)))
            scanned.append(stacks[source] if source in stacks else inputs[i])
        elif i >= count:  # the cotangent of a target
            i -= count
            fields.append(("carry", i) if i < carried else ("scanned", i - carried))
        else:
            fields.append(("invariants", len(invariants)))
            invariants.append(inputs[i])
    if loop.iterations is None and not scanned:  # a scanned input has the number of iterations
        scanned.append(loop.split_inputs(inputs).scanned[0] if loop.scanned else next(iter(stacks.values())))
    starts = {"carry": 0, "scanned": len(carry), "invariants": len(carry) + len(scanned)}
    return _BackwardInputs(carry, scanned, invariants, [starts[field] + i for field, i in fields])


def _backward_loop(
    active: _ActiveLoop,
    graphs: ForwardBackwardGraphs,
    stacks: dict[Source, Any],
    gs: Sequence[Any],
    out: Any,
) -> Tensors:
    """The cotangents of the carried values, invariants and scanned inputs, from the stacked residuals."""
    loop, carried, sums = active.loop, len(active.carried), len(active.invariants)
    carry, scanned, invariants, positions = _backward_inputs(active, graphs, stacks, gs, out)

    def iteration(*tensors: Any) -> Tensors:
        cotangents = replay(graphs.backward, [tensors[i] for i in positions])
        end = len(cotangents) - sums
        totals = [a + b for a, b in zip(tensors[carried : len(carry)], cotangents[end:], strict=True)]
        return [*cotangents[:carried], *totals, *cotangents[carried:end]]

    specs = [
        *[loop.body.inputs[i].spec for i in active.carried],  # sizes that iterations change are dynamic
        *map(_spec, carry[carried:]),
        *map(row_spec, scanned),
        *map(_spec, invariants),
    ]
    backward = LoopSpec(
        traced(iteration, specs),
        carried=len(carry),
        scanned=len(scanned),
        length=loop.iterations,
        reverse=not loop.reverse,
    )
    return run_loop(backward, [*carry, *scanned, *invariants])


def _spec(x: Any) -> TensorSpec:
    return TensorSpec.of(x.shape, x.dtype) if not isinstance(x, Value) else x.spec
