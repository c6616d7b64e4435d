"""Passes that few graphs need: their modules are imported for the first graph that has what they change.

Importing all of them takes 3 ms, a fifteenth of the first call of a small function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualflow.core.dtypes import DType, float16
from dualflow.core.locks import imported
from dualflow.core.records import dataclass
from dualflow.graph.ir import Graph
from dualflow.ops.checks import REQUIRED
from dualflow.ops.contraction import MATMUL
from dualflow.ops.indexing import GETITEM
from dualflow.ops.integer_product import INTEGER_PRODUCT
from dualflow.ops.op_kinds import CONTROL, Cond, Loop, MatMul, Opaque, Scatter
from dualflow.ops.record import Effect, Op
from dualflow.ops.taking import SCATTER_ADD
from dualflow.ops.tensor_sizes import SIZES

_Condition = Callable[[Graph], bool]


@dataclass(frozen=True, slots=True)
class LatePass:
    """A pass whose module is imported for the first graph that needs it.

    Attributes:
        is_needed: false only for graphs that the pass leaves unchanged.
        load: imports the pass and returns it.
    """

    is_needed: Callable[[Graph], bool]
    load: Callable[[], Any]

    def __call__(self, graph: Graph, *options: Any) -> Graph:
        """The graph after the pass, which has these ``options``."""
        changed: Graph = self.load()(graph, *options) if self.is_needed(graph) else graph
        return changed


def has_control(graph: Graph) -> bool:
    """Whether the graph has branches or loops."""
    return any(isinstance(op.kind, CONTROL) for op in graph.ops)


def _kinds(*kinds: type) -> _Condition:
    return lambda graph: any(isinstance(op.kind, kinds) for op in graph.ops)


def _ops(*ops: Op) -> _Condition:
    return lambda graph: graph.ops.issuperset(ops)


def _products(is_kind: Callable[[DType], bool]) -> _Condition:
    """Whether a graph has matrix products whose results have such a dtype."""
    return lambda graph: (
        MATMUL in graph.ops
        and any(node.op is MATMUL and is_kind(node.output.spec.dtype) for node in graph.nodes)
    )


def _has_complex(graph: Graph) -> bool:
    values = (v for node in graph.nodes for v in (*node.inputs, *node.outputs))
    return has_control(graph) or any(v.spec.dtype.is_complex for v in values)


def _has_float16(graph: Graph) -> bool:
    return has_control(graph) or any(v.spec.dtype is float16 for node in graph.nodes for v in node.inputs)


def _has_lowerings(graph: Graph) -> bool:
    return any(isinstance(op.kind, Opaque) and op.kind.lowering for op in graph.ops)


def _has_collectives(graph: Graph) -> bool:
    return any(node.effect is Effect.COLLECTIVE for node in graph.nodes)


take_branches = LatePass(
    _kinds(Cond), lambda: imported("dualflow.graph.passes.inline_branches").take_branches
)
with_static_trip_counts = LatePass(
    _kinds(Loop), lambda: imported("dualflow.graph.passes.unroll_trivial_loops").with_static_trip_counts
)
check_before_reading = LatePass(
    _ops(REQUIRED), lambda: imported("dualflow.graph.passes.empty_checks").check_before_reading
)
cut_products = LatePass(
    _ops(GETITEM, MATMUL), lambda: imported("dualflow.graph.passes.partial_products").cut_products
)
hoist_invariants = LatePass(
    _kinds(Loop), lambda: imported("dualflow.graph.passes.hoist_invariants").hoist_invariants
)
draw_before_loops = LatePass(
    _kinds(Loop), lambda: imported("dualflow.graph.passes.hoist_random").draw_before_loops
)
compute_from_sizes = LatePass(
    _ops(SIZES), lambda: imported("dualflow.graph.passes.hoist_size_scalars").compute_from_sizes
)
sum_integer_products = LatePass(
    _ops(INTEGER_PRODUCT), lambda: imported("dualflow.graph.passes.integer_products").sum_integer_products
)
multiply_integer_matrices = LatePass(
    _kinds(MatMul), lambda: imported("dualflow.graph.passes.integer_products").multiply_integer_matrices
)
sum_integer_matrices = LatePass(
    _products(lambda dtype: dtype.is_integer),
    lambda: imported("dualflow.graph.passes.integer_products").sum_integer_matrices,
)
lower_small_operands = LatePass(
    _has_lowerings, lambda: imported("dualflow.graph.passes.small_operands").lower_small_operands
)
split_complex_products = LatePass(
    _products(lambda dtype: dtype.is_complex),
    lambda: imported("dualflow.graph.passes.complex_products").split_complex_products,
)
split_complex = LatePass(_has_complex, lambda: imported("dualflow.graph.passes.complex_parts").split_complex)
widen_float16 = LatePass(_has_float16, lambda: imported("dualflow.graph.passes.float16").widen_float16)
batch_products = LatePass(has_control, lambda: imported("dualflow.graph.passes.loop_products").batch_products)
add_in_products = LatePass(_ops(MATMUL), lambda: imported("dualflow.graph.passes.epilogues").add_in_products)
step_on_rows = LatePass(
    _ops(SCATTER_ADD), lambda: imported("dualflow.graph.passes.sparse_updates").step_on_rows
)
add_in_scatters = LatePass(
    _kinds(Scatter), lambda: imported("dualflow.graph.passes.scatter_epilogues").add_in_scatters
)
run_collectives_natively = LatePass(
    _has_collectives, lambda: imported("dualflow.graph.passes.native_collectives").run_collectives_natively
)
