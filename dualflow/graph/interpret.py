"""Run a graph node by node: the reference for compiled graphs, and the way to inline one in another trace."""

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
from dualflow.graph.error_notes import asked_for, note_place
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.respecialise_bodies import attrs_for
from dualflow.graph.unequal_rows import UnequalRows
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Effect

Array = np.ndarray[Any, Any]
RunNode = Callable[[Node, Sequence[Array]], Sequence[Array]]
Begin = Callable[[Graph, Sequence[Array]], None]


def evaluate(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """The results of ``graph`` (outputs, then updates) for one array per input, by the ops' NumPy kernels.

    An array that no later node reads is let go. An error carries the user's line as a note.

    Raises:
        InternalError: another number of arrays than the graph has inputs.
    """
    if len(arrays) != len(graph.inputs):
        raise InternalError(f"{graph.name} has {len(graph.inputs)} inputs and was given {len(arrays)}")
    known = dict(zip(graph.inputs, arrays, strict=True))
    last = _last_reads(graph)
    run, begin = _observer.get()
    if begin is not None:
        begin(graph, arrays)
    for node in graph.nodes:
        known.update(zip(node.outputs, run(node, [known[v] for v in node.inputs]), strict=True))
        for value in last.get(node, ()):
            del known[value]
    return [known[v] for v in graph.results]


def run_node(node: Node, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs of one node, by its op's NumPy kernel; a fused node's, by its body.

    Inputs that don't fit together raise what the op's shape and dtype rule says of them, as in eager code:
    their sizes may be known only now. Whatever else the kernel raises goes through. The user's line is added.

    Raises:
        ResourceExhaustedError: there is no memory for what a kernel computes.
    """
    body = body_of(node)
    if body is not None:
        return tuple(evaluate(body, arrays))
    try:
        if node.op.effect is None:  # the op's own: what runs graphs computes nothing itself, and is observed
            found = quiet().run(node.op.kernel, *arrays, **node.attrs)
        else:
            found = node.op.kernel(*arrays, **node.attrs)
    except Exception as error:
        told = _in_words(error, node, arrays)
        if node.origin or not node.bodies:
            told.add_note(asked_for(node))
        if told is error:
            raise
        raise told from error
    several = found if isinstance(found, tuple | list) else (found,)
    return tuple([x if type(x) is np.ndarray else _as_output(x) for x in several])


def _as_output(x: Any) -> Any:
    return x if type(x) is UnequalRows else as_result(x)


def _in_words(error: Exception, node: Node, arrays: Sequence[Array]) -> Exception:
    """What is wrong with the inputs, where ``error`` is NumPy's own and the op's rule finds it.

    Errors of users' Python code, and those out of graphs inside the node, are left as they are.
    """
    if isinstance(error, DualflowError) or node.op.effect is not None or node.bodies:
        return error
    specs = [
        TensorSpec.of(Shape(np.shape(x)), v.spec.dtype) for v, x in zip(node.inputs, arrays, strict=True)
    ]
    if is_out_of_memory(error):
        return out_of_memory(f"{node.op.name}({', '.join(map(str, specs))})", error)
    try:
        node.op.specs(specs, dict(node.attrs))
    except DualflowError as found:
        return found
    return error


class observed:
    """``with observed(run):`` each node that is evaluated in the block, in bodies too, is run by ``run``.

    ``run(node, arrays)`` returns the node's outputs, as :func:`run_node` does; ``observed(None)`` is the way
    back to it. ``begin(graph, arrays)`` is told of each graph before its first node: of each branch that is
    taken, and each iteration of a loop.
    """

    __slots__ = ("_observer", "_token")

    def __init__(self, run: RunNode | None, begin: Begin | None = None) -> None:
        self._observer = run or run_node, begin

    def __enter__(self) -> None:
        self._token: Token[tuple[RunNode, Begin | None]] = _observer.set(self._observer)

    def __exit__(self, *exc: object) -> None:
        _observer.reset(self._token)


def replay(graph: Graph, tensors: Sequence[Any], note: Callable[[Any, Any], None] | None = None) -> list[Any]:
    """The results of ``graph`` (outputs, then updates) for one tensor per input, through the current engine.

    Eager engines run the ops, a trace records them as its own with their lines, tapes watch each. Bodies of
    conditionals and loops get the sizes that the tensors have. ``note`` is told of each assignment outside of
    bodies: the variable, and the tensor that it holds from there on.
    """
    engine = dispatch.current()
    known: dict[Value, Any] = dict(zip(graph.inputs, tensors, strict=True))
    for node in graph.nodes:
        if isinstance(node.op.kind, Literal):
            known[node.output] = engine.constant(node.attrs["value"])
            continue
        if node.effect is Effect.ASSIGN:
            if note is not None:
                with origin.forced(node.origin):
                    note(node.attrs["variable"], known[node.inputs[0]])
            continue
        with origin.forced(node.origin):
            inputs = tuple([known[v] for v in node.inputs])
            try:
                found = engine.apply(node.op, inputs, dict(attrs_for(node, [x.spec for x in inputs])))
            except DualflowError as error:
                note_place(error, node)
                raise
        if node.outputs:
            outputs = found if isinstance(found, tuple) else (found,)
            known.update(zip(node.outputs, outputs, strict=True))
    return [known[v] for v in graph.results]


def _last_reads(graph: Graph) -> dict[Node, list[Value]]:
    """The values that may be dropped after each node: read there for the last time, or made for nobody."""
    kept = set(graph.results)
    last: dict[Value, Node] = {}
    for node in graph.nodes:
        for value in (*node.outputs, *node.inputs):
            last[value] = node
    dropped: dict[Node, list[Value]] = {}
    for value, node in last.items():
        if value not in kept:
            dropped.setdefault(node, []).append(value)
    return dropped


_observer: Final[ContextVar[tuple[RunNode, Begin | None]]] = ContextVar(
    "dualflow_observer", default=(run_node, None)
)
