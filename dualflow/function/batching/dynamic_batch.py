"""``vmap`` with dynamic sizes: an op whose attribute is the function of one element.

The number of elements, or a size of each, is known when the graph is specialised for symbolic or static
sizes. The function is then recorded again with these sizes, and evaluated for the whole batch. The gradient
is ``vmap`` of the function's vjp, so there are gradients of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass, field, replace
from dualflow.core.shape import Dim, Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.tape import GradientTape, apply_vjp
from dualflow.function.batching.batched_value import BatchedValue, UnbatchableError
from dualflow.function.batching.dependence import batched_outputs
from dualflow.function.batching.evaluate import evaluate_batched
from dualflow.function.calls.size_inference import SizeInference
from dualflow.function.control.trace_bodies import traced
from dualflow.graph import origin
from dualflow.graph.control_ops import LOOP
from dualflow.graph.control_spec import LoopSpec, effect_of
from dualflow.graph.extract import extract
from dualflow.graph.interpret import replay
from dualflow.graph.ir import BodySpec, Graph, Node
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.respecialise_bodies import resized
from dualflow.graph.symbolic_size_ops import BIND_SIZE, computes_sizes
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.complex_numbers import conj
from dualflow.ops.op_kinds import Decompose
from dualflow.ops.record import Effect, Op

Array = np.ndarray[Any, Any]
_UNEQUAL: Final = (
    "vmap: the first axes of the batched arguments must have one size; one has shape {0}, another {1}"
)


@dataclass(frozen=True, slots=True)
class BatchSpec(BodySpec):
    """The function of a ``vmap`` node.

    Attributes:
        body: the graph of one element. The node's inputs are its inputs, and its outputs are stacked.
        batched: whether each input has a batch axis, the first; the elements share the others.
        sequential: whether elements are computed one by one if an operation has no batched form.
        effect: the strongest effect of the body.
    """

    body: Graph
    batched: tuple[bool, ...]
    sequential: bool
    effect: Effect | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "effect", effect_of([self.body]))

    @property
    def bodies(self) -> tuple[tuple[str, Graph], ...]:
        return (("body", self.body),)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"batched": self.batched, "sequential": self.sequential}

    def with_bodies(self, change: Callable[[Graph], Graph]) -> BatchSpec:
        body = change(self.body)
        return self if body is self.body else replace(self, body=body)

    def values(self, tensors: Sequence[Any]) -> list[BatchedValue]:
        """The inputs of the body for a whole batch."""
        return [BatchedValue(x, batched) for x, batched in zip(tensors, self.batched, strict=True)]

    def in_loop_order(self, inputs: Sequence[Any]) -> list[Any]:
        """``inputs`` in the order of the loop of :meth:`as_loop`: those with a batch axis are the first."""
        order = sorted(range(len(inputs)), key=lambda i: not self.batched[i])
        return [inputs[i] for i in order]

    def as_loop(self) -> LoopSpec:
        """A loop that computes one element after the other."""
        body = replace(self.body, inputs=tuple(self.in_loop_order(self.body.inputs)))
        return LoopSpec(body, 0, sum(self.batched), None)

    def count(self, shapes: Sequence[Sequence[Dim]]) -> Dim:
        """The number of elements for inputs of ``shapes``; None if it is dynamic."""
        sizes = [shape[0] for shape, batched in zip(shapes, self.batched, strict=True) if batched]
        return next((size for size in sizes if size is not None), None)


def _infer(*specs: TensorSpec, batch: BatchSpec) -> tuple[TensorSpec, ...]:
    sizes = {s.shape[0] for s, is_batched in zip(specs, batch.batched, strict=True) if is_batched} - {None}
    if len(sizes) > 1:
        raise InvalidArgumentError(
            f"the batch axes have different sizes: {sorted(sizes, key=str)}; they must be equal."
        )
    count = batch.count([s.shape for s in specs])
    elements = [
        TensorSpec.of(s.shape[1:], s.dtype) if is_batched else s
        for s, is_batched in zip(specs, batch.batched, strict=True)
    ]
    results = resized(batch.body, elements).outputs
    return tuple([TensorSpec.of(Shape((count, *v.spec.shape)), v.spec.dtype) for v in results])


def _resolved(read: SizeInference, *inputs: Any, batch: BatchSpec) -> tuple[Any, ...]:
    count = batch.count([x.shape for x in inputs])
    assert count is not None, "sizes are numbers or symbolic"
    equal = [
        read.require_shape(x, (count, *x.shape[1:]), _UNEQUAL) if is_batched else x
        for x, is_batched in zip(inputs, batch.batched, strict=True)
    ]
    values = batch.values(equal)
    sources = [None if x.is_batched else x.tensor._value for x in values]
    body = read.infer_body(batch.body, [x.element_spec for x in values], sources)
    try:
        _check_sizes(body)
        results = evaluate_batched(body, values, count)
        return tuple([y.with_batch_axis(count) for y in results])
    except UnbatchableError:
        if not batch.sequential:
            raise
    operands = [x._value for x in batch.in_loop_order(equal)]
    node = Node(LOOP, operands, {"loop": batch.as_loop()}, (), origin.caller())
    return tuple(map(read.tracer.tensor_of, read.record_node(node, operands)))


def _check_sizes(body: Graph) -> None:
    """Raise an error if a size in ``body``, the graph of one element, depends on the element's values."""
    node = next((n for n in body.nodes if _computes_size(n)), None)
    if node is not None:
        where = f"\n  {node.origin}" if node.origin else ""
        raise UnbatchableError(
            "the sizes of results depend on values, and may differ between batch elements; use df.map_fn, or "
            f"mask entries instead of removing them.{where}"
        )


def _computes_size(node: Node) -> bool:
    return (node.op is BIND_SIZE and bool(node.inputs)) or any(computes_sizes(b) for _, b in node.bodies)


def _kernel(*arrays: Array, batch: BatchSpec) -> tuple[Array, ...]:
    results: tuple[Array, ...] = LOOP.kernel(*batch.in_loop_order(arrays), loop=batch.as_loop())
    return results


def _joint_vjp(needed: Sequence[bool], g: Any, out: Any, *inputs: Any, batch: BatchSpec) -> list[Any]:
    """The cotangents of the inputs: ``vmap`` of the vjp of the body, summed for inputs that are shared."""
    _check_effects(batch.body)
    gs = g if isinstance(g, tuple) else (g,)
    targets = [i for i, cotangent in enumerate(gs) if cotangent is not None]
    sources = [i for i, x in enumerate(inputs) if needed[i] and x.dtype.is_inexact]
    cotangents: list[Any] = [None] * len(inputs)
    if not sources or not targets:
        return cotangents

    def element_vjp(*tensors: Any) -> list[Any]:
        values, weights = tensors[: len(inputs)], tensors[len(inputs) :]
        watched = [values[i] for i in sources]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(watched)
            results = replay(batch.body, values)
        flows = apply_vjp(tape, [results[i] for i in targets], [conj(w) for w in weights], watched)
        return [conj(flow) for flow in flows]

    weights = [BatchedValue(gs[i], is_batched=True) for i in targets]
    values = [*batch.values(inputs), *weights]
    body = traced(element_vjp, [x.element_spec for x in values])
    vjp = BatchSpec(body, tuple([x.is_batched for x in values]), batch.sequential)
    flows = dispatch.current().apply(VMAP, tuple([x.tensor for x in values]), {"batch": vjp})
    for i, flow in zip(sources, flows, strict=True):
        cotangents[i] = flow if batch.batched[i] else reduce_sum(flow, 0)
    return cotangents


def _check_effects(body: Graph) -> None:
    """Raise an error if the body can't be run again for its gradient."""
    effect = next((n for n in body.nodes if n.effect not in (None, Effect.CHECK)), None)
    if effect is not None:
        where = f"\n  {effect.origin}" if effect.origin else ""
        raise InvalidArgumentError(
            f"vmap over dynamic sizes can't run {effect.op.name} again for the gradient; draw random numbers "
            f"or call Python outside of vmap, and pass the results as batched arguments.{where}"
        )


VMAP: Final = Op(
    name="vmap",
    doc="The results of a graph for each element of a batch, stacked; a size is known at run time only.",
    infer=_infer,
    kernel=_kernel,
    kind=Decompose(_resolved),
    joint_vjp=_joint_vjp,
    outputs=None,
    effect=Effect.INSIDE,
)


def batched_dynamically(graph: Graph, values: Sequence[BatchedValue], sequential: bool) -> list[BatchedValue]:
    """The outputs of ``graph`` for a batch, by a node for which sizes may be dynamic.

    Outputs that are the same for all elements are computed once, without a batch axis.

    Args:
        graph: the trace for one element.
        values: one for each input; at least one is batched.
        sequential: whether elements are computed one by one if an operation has no batched form.

    Raises:
        UnbatchableError: the graph assigns a variable.
    """
    assigned = next((n for n in graph.nodes if n.effect is Effect.ASSIGN), None)
    if assigned is not None:
        raise UnbatchableError(
            f"{assigned.attrs['variable']!r} is assigned in vmap over a dynamic size; return the value, and "
            f"assign it outside of vmap.\n  {assigned.origin}"
        )
    is_batched = tuple([x.is_batched for x in values])
    depends = batched_outputs(graph, is_batched)
    tensors = [x.tensor for x in values]
    graph = replace(graph, captures=())
    body = eliminate_dead_code(replace(graph, outputs=tuple(compress(graph.outputs, depends))))
    batch = BatchSpec(body, is_batched, sequential)
    stacked = iter(dispatch.current().apply(VMAP, tuple(tensors), {"batch": batch}))
    others = [v for v, depending in zip(graph.outputs, depends, strict=True) if not depending]
    shared = iter(replay(extract(graph, graph.inputs, others), tensors))
    return [BatchedValue(next(stacked if depending else shared), depending) for depending in depends]
