"""Widens ops on float16: casts to float32, the op in float32, and a cast back that rounds once.

So loops, reductions and matrix products only cast and move float16. An op that depends on the precision of
its dtype stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.core.dtypes import DType, float16, float32
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.constant_folding import fold_constants
from dualflow.graph.passes.hoist_invariants import hoist_invariants
from dualflow.graph.passes.over_bodies import inside_out
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.ops.conversion import CAST
from dualflow.ops.op_kinds import Elementwise, MatMul, Reduce


def widen_float16(graph: Graph) -> Graph:
    """``graph`` with ops on float16 computed in float32, and each result rounded to float16."""
    widened = _widen_everywhere(graph)
    return graph if widened is graph else hoist_invariants(widened)


def _widen(graph: Graph) -> Graph:
    if not [node for node in graph.nodes for v in node.inputs if v.spec.dtype is float16]:
        return graph
    return fold_constants(rebuild(graph, _Widened()))


_widen_everywhere = inside_out(_widen)


def _computes_in_float16(node: Node) -> bool:
    kind = node.op.kind
    if not isinstance(kind, Elementwise | Reduce | MatMul) or node.op is CAST:
        return False
    if isinstance(kind, Elementwise) and kind.depends_on_precision:
        return False
    return any(v.spec.dtype is float16 for v in node.inputs)


class _Widened:
    """The rule of :func:`rebuild`. A value is cast once for all its consumers."""

    def __init__(self) -> None:
        self._wide: dict[Value, Value] = {}

    def __call__(self, node: Node, current: Node) -> Expansion | None:
        if not _computes_in_float16(node):
            return None
        new_nodes: list[Node] = []
        inputs = [self._in_float32(value, current, new_nodes) for value in current.inputs]
        specs = node.op.specs([v.spec for v in inputs], dict(node.attrs))
        wide = Node(node.op, inputs, node.attrs, specs, node.origin, node.merged_origins)
        new_nodes.append(wide)
        return Expansion(new_nodes, _rounded(wide, node.specs, new_nodes))

    def _in_float32(self, value: Value, reader: Node, new_nodes: list[Node]) -> Value:
        if value.spec.dtype is not float16:
            return value
        if value not in self._wide:
            self._wide[value] = _cast(value, float32, reader, new_nodes)
        return self._wide[value]


def _rounded(wide: Node, specs: Sequence[TensorSpec], new_nodes: list[Node]) -> list[Value]:
    return [
        new if new.spec.dtype is spec.dtype else _cast(new, spec.dtype, wide, new_nodes)
        for new, spec in zip(wide.outputs, specs, strict=True)
    ]


def _cast(value: Value, dtype: DType, for_node: Node, new_nodes: list[Node]) -> Value:
    spec = TensorSpec.of(value.spec.shape, dtype)
    new_nodes.append(Node(CAST, [value], {"dtype": dtype}, [spec], for_node.origin, for_node.merged_origins))
    return new_nodes[-1].output
