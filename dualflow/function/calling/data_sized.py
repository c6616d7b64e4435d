"""Graphs in which sizes depend on data: which they are, and such a graph as one node that NumPy runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import effect_of
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph, Node, Update
from dualflow.ops.forms import Element, Loop, Opaque, Sized
from dualflow.ops.record import Effect, Op

Array = np.ndarray[Any, Any]


def sized_by_data(graph: Graph) -> Node | None:
    """The first node with a result whose size depends on data, or that reads sizes; None if there is none.

    What loops keep of their turns is read by loops, or computed with row by row.
    """
    given = any(not v.spec.shape.is_static for v in graph.inputs)
    for node in graph.nodes:
        if isinstance(node.op.form, Sized):
            return node
        if given or not isinstance(node.op.form, Loop | Element):
            for spec in node.specs:
                if not spec.shape.is_static:
                    return node
        for _, body in node.bodies:
            found = sized_by_data(body)
            if found is not None:
                return found
    return None


def as_one_node(graph: Graph, cause: Node) -> Graph:
    """``graph`` as one node, which runs it op by op through NumPy on account of ``cause``."""
    body = Graph(graph.name, graph.inputs, graph.nodes, graph.results)
    where = f" in line {cause.origin.line}" if cause.origin is not None else ""
    reason = f"the size of what {cause.op.name}{where} makes depends on data"
    node = Node(
        _all_ops(reason, effect_of([body])), graph.inputs, {"body": body}, [v.spec for v in graph.results]
    )
    count = len(graph.outputs)
    updates = [Update(u.input, v) for u, v in zip(graph.updates, node.outputs[count:], strict=True)]
    return Graph(graph.name, graph.inputs, (node,), node.outputs[:count], graph.captures, tuple(updates))


class _AllOps(Op):
    """The op of such a node, which each has its own of: pickled as its reason and effect."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        assert isinstance(self.form, Opaque), "NumPy runs it"
        return _all_ops, (self.form.reason, self.effect)


def _all_ops(reason: str, effect: Effect | None) -> Op:
    return _AllOps(
        name="all_ops",
        doc="A graph, op by op.",
        infer=_infer,
        kernel=_run,
        form=Opaque(reason),
        outputs=None,
        effect=effect,
    )


def _infer(*specs: TensorSpec, body: Graph) -> tuple[TensorSpec, ...]:
    return tuple(v.spec for v in body.outputs)


def _run(*arrays: Array, body: Graph) -> tuple[Array, ...]:
    return tuple(evaluate(body, arrays))
