"""The interpreter: runs a graph node by node, on arrays through NumPy or on tensors through an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import as_result
from dualflow.core.errors import DualflowError, InternalError
from dualflow.core.memory_errors import is_out_of_memory, out_of_memory
from dualflow.core.numpy_warnings import quiet
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph import origin
from dualflow.graph.error_notes import call_site, note_place
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.respecialise_bodies import attrs_for
from dualflow.graph.symbolic_evaluation import bind_inputs, bind_size, binds, bound_sizes, with_numbers
from dualflow.graph.unequal_rows import UnequalRows
from dualflow.ops.op_kinds import Elementwise, Literal
from dualflow.ops.record import Effect

Array = np.ndarray[Any, Any]
RunNode = Callable[[Node, Sequence[Array]], Sequence[Array]]
OnGraph = Callable[[Graph, Sequence[Array]], None]


def evaluate(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """The results of ``graph`` (outputs, then updates) for one array per input, by the ops' NumPy kernels.

    An array is released after its last consumer. An error has the user's line as a note.

    Raises:
        InternalError: another number of arrays than the graph has inputs.
    """
    if len(arrays) != len(graph.inputs):
        raise InternalError(f"{graph.name} has {len(graph.inputs)} inputs, but got {len(arrays)} arrays")
    arrays_of = dict(zip(graph.inputs, arrays, strict=True))
    last = _last_reads(graph)
    run, on_graph = _observer.get()
    if on_graph is not None:
        on_graph(graph, arrays)
    sizes = bound_sizes()
    if sizes is not None:
        bind_inputs(sizes, graph, arrays)
    for node in graph.nodes:
        inputs = [arrays_of[v] for v in node.inputs]
        if sizes is not None and binds(node):
            bind_size(sizes, node, inputs)
            continue
        numbered = node if sizes is None else with_numbers(node, sizes)
        arrays_of.update(zip(node.outputs, run(numbered, inputs), strict=True))
        for value in last.get(node, ()):
            del arrays_of[value]
    return [arrays_of[v] for v in graph.results]


def run_node(node: Node, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs of one node, by its op's NumPy kernel, or by its body if it is a fused node.

    If operands whose sizes are dynamic in the graph don't fit together, the error of the op's shape and dtype
    rule is raised, as in eager code. Other errors of the kernel are passed on. The user's line is added as a
    note.

    Raises:
        ResourceExhaustedError: a kernel is out of memory.
    """
    body = body_of(node)
    if body is not None:
        return tuple(evaluate(body, arrays))
    try:
        if not isinstance(node.op.kind, Elementwise) and _has_dynamic_inputs(node):
            node.op.specs(_specs_of(node, arrays), dict(node.attrs))  # a kernel may accept more than its rule
        if node.op.effect is None:  # the nodes of a branch or loop are run one by one, by this function
            results = quiet().run(node.op.kernel, *arrays, **node.attrs)
        else:
            results = node.op.kernel(*arrays, **node.attrs)
    except Exception as error:
        described = _described_error(error, node, arrays)
        if node.origin or not node.bodies:
            described.add_note(call_site(node))
        if described is error:
            raise
        raise described from error
    outputs = results if isinstance(results, tuple | list) else (results,)
    return tuple([x if type(x) is np.ndarray else _as_output(x) for x in outputs])


def _as_output(x: Any) -> Any:
    return x if type(x) is UnequalRows else as_result(x)


def _described_error(error: Exception, node: Node, arrays: Sequence[Array]) -> Exception:
    """The error of the op's shape and dtype rule, if it raises one for these operands; else ``error``.

    Errors of users' Python code, and of graphs inside the node, are returned as they are.
    """
    if isinstance(error, DualflowError) or node.op.effect is not None or node.bodies:
        return error
    specs = _specs_of(node, arrays)
    if is_out_of_memory(error):
        return out_of_memory(f"{node.op.name}({', '.join(map(str, specs))})", error)
    try:
        node.op.specs(specs, dict(node.attrs))
    except DualflowError as rule_error:
        return rule_error
    return error


def _has_dynamic_inputs(node: Node) -> bool:
    """Whether a size of an input is dynamic, and the rule of the op checks it, as that of no Python call."""
    return node.op.effect is None and not node.bodies and any(not v.spec.shape.is_static for v in node.inputs)


def _specs_of(node: Node, arrays: Sequence[Array]) -> list[TensorSpec]:
    pairs = zip(node.inputs, arrays, strict=True)
    return [TensorSpec.of(Shape(np.shape(x)), v.spec.dtype) for v, x in pairs]


class observed:
    """``with observed(run):`` runs each node of the block by ``run``, in branches and loops too.

    ``run(node, arrays)`` returns the node's outputs, as :func:`run_node` does; ``observed(None)`` restores
    it. ``on_graph(graph, arrays)`` is called before the first node of each graph: for each branch that is
    taken, and for each iteration of a loop.
    """

    __slots__ = ("_observer", "_token")

    def __init__(self, run: RunNode | None, on_graph: OnGraph | None = None) -> None:
        self._observer = run or run_node, on_graph

    def __enter__(self) -> None:
        self._token: Token[tuple[RunNode, OnGraph | None]] = _observer.set(self._observer)

    def __exit__(self, *exc: object) -> None:
        _observer.reset(self._token)


def replay(
    graph: Graph, tensors: Sequence[Any], on_assignment: Callable[[Any, Any], None] | None = None
) -> list[Any]:
    """The results of ``graph`` (outputs, then updates) for one tensor per input, through the current engine.

    An eager engine runs the ops, a trace records them with their lines, and tapes watch them. Bodies of
    branches and loops are specialised to the sizes of the tensors. ``on_assignment(variable, tensor)`` is
    called for each assignment outside of bodies.
    """
    engine = dispatch.current()
    tensors_of: dict[Value, Any] = dict(zip(graph.inputs, tensors, strict=True))
    for node in graph.nodes:
        if isinstance(node.op.kind, Literal):
            tensors_of[node.output] = engine.constant(node.attrs["value"])
            continue
        if node.effect is Effect.ASSIGN:
            if on_assignment is not None:
                with origin.recorded_as(node):
                    on_assignment(node.attrs["variable"], tensors_of[node.inputs[0]])
            continue
        with origin.recorded_as(node):
            inputs = tuple([tensors_of[v] for v in node.inputs])
            try:
                result = engine.apply(node.op, inputs, dict(attrs_for(node, [x.spec for x in inputs])))
            except DualflowError as error:
                note_place(error, node)
                raise
        if node.outputs:
            outputs = result if isinstance(result, tuple) else (result,)
            tensors_of.update(zip(node.outputs, outputs, strict=True))
    return [tensors_of[v] for v in graph.results]


def _last_reads(graph: Graph) -> dict[Node, list[Value]]:
    """For each node, the values that can be freed after it: no later node reads them."""
    results = set(graph.results)
    last: dict[Value, Node] = {}
    for node in graph.nodes:
        for value in (*node.outputs, *node.inputs):
            last[value] = node
    dropped: dict[Node, list[Value]] = {}
    for value, node in last.items():
        if value not in results:
            dropped.setdefault(node, []).append(value)
    return dropped


_observer: Final[ContextVar[tuple[RunNode, OnGraph | None]]] = ContextVar(
    "dualflow_observer", default=(run_node, None)
)
