"""Whether a program that is compiled for the sizes of one call runs faster than one for all sizes.

Loop nests, matrix products and copies run as fast if the size of an argument's first axis is read at the
call. Algorithms that are chosen by a size (sorts, transforms, windows, scatters) may not. Sizes that depend
on data, bodies of branches and loops, and calls of Python are planned for what is static.
"""

from __future__ import annotations

from typing import Final

from dualflow.graph.column_reductions import is_column_reduction
from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.assignments import ASSIGNMENT
from dualflow.graph.string_graphs import holds_strings
from dualflow.ops.op_kinds import CopyPieces, Elementwise, Literal, MatMul, Reduce, View
from dualflow.sizes.symbolic_sizes import TYPICAL

_FOR_ALL_SIZES: Final = frozenset((CopyPieces, Elementwise, Literal, MatMul, Reduce, View))
"""The kinds of ops whose kernels don't depend on the first size of an argument."""


def gains_from_static_sizes(graph: Graph) -> bool:
    """Whether an op of ``graph``, whose sizes are static, has a faster kernel than for all sizes."""
    return holds_strings(graph) or not all(map(_runs_alike_for_all_sizes, graph.nodes))


def _runs_alike_for_all_sizes(node: Node) -> bool:
    kind = node.op.kind
    if (type(kind) is View and kind.sliding) or (type(kind) is Reduce and _reduces_long_columns(node)):
        return False
    return type(kind) in _FOR_ALL_SIZES or node.op is ASSIGNMENT


def _reduces_long_columns(node: Node) -> bool:
    """Whether a reduction of columns has more rows than a program for all sizes is planned for."""
    shape = [size for size in node.inputs[0].spec.shape if size is not None]  # all are static
    axes, reduced = range(len(shape)), frozenset(node.attrs["axis"])
    planned = (TYPICAL, *shape[1:])
    return is_column_reduction(shape, axes, reduced) and not is_column_reduction(planned, axes, reduced)
