"""What programs of this backend can do on this machine."""

from __future__ import annotations

from dualflow.backends.llvm.product import selection
from dualflow.backends.llvm.runtime import target
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.options import CompileOptions


def capabilities() -> Capabilities:
    """All, on vectors of this process's width; where products are BLAS's, those that BLAS computes."""
    own = selection.own()
    return Capabilities(strided_products=own, windows=own, vector_bytes=target.vector_bits() // 8)


def vector_bits(options: CompileOptions) -> int:
    """The width of the vectors that code is written for."""
    requested = options.capabilities.vector_bytes
    return target.vector_bits() if requested is None else 8 * requested
