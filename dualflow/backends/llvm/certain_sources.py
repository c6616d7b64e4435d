"""The routines that a program is certain to call, as its plan shows.

They are among its largest modules. LLVM compiles them on another processor while the modules that write
programs are imported, and while the kernels are written.
"""

from __future__ import annotations

from collections.abc import Iterator

from dualflow.backends.llvm.product.gemm_or_blas import uses_own_gemm
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.steps import driver
from dualflow.core.locks import imported
from dualflow.graph.ir import Node
from dualflow.graph.views import sizes
from dualflow.schedule.operands import CallKind
from dualflow.schedule.planned import Plan


def certain_sources(plan: Plan) -> Iterator[IrSource]:
    """The driver of steps, and the routine of each kind of product, that the program of ``plan`` calls."""
    if any(call.kind is not CallKind.HOST for call in plan.calls):
        yield driver()
    products = [call.node for call in plan.walk() if call.kind is CallKind.PRODUCT]
    if uses_own_gemm():
        yield from dict.fromkeys([_routine(node) for node in products if 0 not in sizes(node.output)])


def _routine(product: Node) -> IrSource:
    gemm = imported("dualflow.backends.llvm.product.gemm").gemm  # not needed for programs without products
    windows = product.attrs.get("windows") is not None
    source: IrSource = gemm(product.output.spec.dtype.char, windows=windows).source()
    return source
