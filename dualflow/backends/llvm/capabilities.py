"""The capabilities of this backend on this machine."""

from __future__ import annotations

from dualflow.backends.llvm.product import gemm_or_blas
from dualflow.backends.llvm.runtime import cache_sizes, target
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.options import CompileOptions


def capabilities() -> Capabilities:
    """The capabilities: all, with this machine's vector width and caches; no strided products with BLAS."""
    has_own_gemm = gemm_or_blas.uses_own_gemm()
    return Capabilities(
        strided_products=has_own_gemm,
        integer_products=has_own_gemm and target.vector_bits() >= 256,
        windows=has_own_gemm,
        vector_bytes=target.vector_bits() // 8,
        cache_bytes=cache_sizes.cache_bytes(),
    )


def vector_bits(options: CompileOptions) -> int:
    """The vector width of generated code in bits."""
    requested = options.capabilities.vector_bytes
    return target.vector_bits() if requested is None else 8 * requested
