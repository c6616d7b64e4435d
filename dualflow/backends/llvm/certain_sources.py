"""The routines that a program calls, as its graph before the passes and its plan show.

They are among its largest modules. LLVM compiles them on another processor while the passes run, the modules
that write programs are imported, and the kernels are written.
"""

from __future__ import annotations

from collections.abc import Iterator

from dualflow.backends.llvm.product.gemm_or_blas import uses_own_gemm
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.steps import driver
from dualflow.core.locks import imported
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.views import sizes
from dualflow.ops.op_kinds import MatMul, View
from dualflow.schedule.operands import PRODUCT_CHARS, CallKind
from dualflow.schedule.planned import Plan


def probable_sources(graph: Graph) -> Iterator[IrSource]:
    """The drivers, and the routines of the products in ``graph``, whose passes have not run."""
    yield driver()
    products = [node for node in graph.nodes if _is_product(node)]
    if products and uses_own_gemm():
        yield from dict.fromkeys([source for node in products for source in _routines(node)])


def _is_product(node: Node) -> bool:
    """Whether a node is a product of matrices of floats with elements, none of them windows of a tensor."""
    if not isinstance(node.op.kind, MatMul) or node.output.spec.dtype.char not in PRODUCT_CHARS:
        return False
    return 0 not in sizes(node.output) and not any(map(_shows_windows, node.inputs))


def _shows_windows(value: Value) -> bool:
    """Whether ``value`` is a view of sliding windows."""
    node = value.node
    while node is not None and isinstance(node.op.kind, View):
        if node.op.kind.sliding:
            return True
        node = node.inputs[0].node
    return False


def certain_sources(plan: Plan) -> Iterator[IrSource]:
    """The drivers, and the routine of each kind of product, that the program of ``plan`` calls."""
    if any(call.kind is not CallKind.HOST for call in plan.calls):
        yield driver()
    products = [call.node for call in plan.walk() if call.kind is CallKind.PRODUCT]
    if uses_own_gemm():
        filled = [node for node in products if 0 not in sizes(node.output)]
        yield from dict.fromkeys([source for node in filled for source in _routines(node)])


def _routines(product: Node) -> list[IrSource]:
    """The routine of a product, the copy of windows, and the widest micro-kernel if both factors call it."""
    gemm = imported("dualflow.backends.llvm.product.gemm").gemm  # not needed for programs without products
    windows = product.attrs.get("windows") is not None
    routine = gemm(product.output.spec.dtype.char, windows=windows)
    wide = all(routine.calls_wide(size) for size in sizes(product.output)[-2:])  # either may be the columns
    return [*[routine.copy_source()] * windows, *[routine.wide_source()] * wide, routine.source()]
