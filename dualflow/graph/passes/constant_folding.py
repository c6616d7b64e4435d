"""Constant folding: what is known while compiling isn't computed at each call."""

from __future__ import annotations

from dualflow.core.extent import symbols
from dualflow.graph.interpret import run_node
from dualflow.graph.ir import Graph, Node
from dualflow.graph.rewrite import Make, Replacement, rewrite
from dualflow.ops.forms import Literal, View

SMALL_BYTES = 1 << 16


def fold_constants(graph: Graph) -> Graph:
    """``graph`` where nodes that read only constants are constants, if their results are small."""
    return rewrite(graph, fold)


def fold(node: Node, make: Make) -> Replacement:
    """f(constants) = its value, where that takes at most 64 KiB or no more than the constants themselves.

    A view that repeats elements stays, since reading the few is cheaper. An op that raises stays too: it must
    fail when it runs, or not at all if nobody reads it.
    """
    if node.effect is not None or isinstance(node.op.form, Literal):
        return None
    arrays = []
    for value in node.inputs:
        source = value.node
        if source is None or not isinstance(source.op.form, Literal):
            return None
        arrays.append(source.attrs["value"])
    if any(symbols(tuple(spec.shape)) for spec in node.specs) or symbols(node.attrs):
        return None
    given = sum(a.nbytes for a in arrays)
    wanted = sum(spec.nbytes if spec.shape.is_static else SMALL_BYTES + 1 for spec in node.specs)
    if wanted > given and (wanted > SMALL_BYTES or isinstance(node.op.form, View)):
        return None
    try:
        results = run_node(node, arrays)
    except Exception:  # whatever the kernel raises, it raises again at run time
        return None
    return [make("constant", (), {"value": array.copy()}) for array in results]
