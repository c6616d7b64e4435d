"""The capabilities of this backend on this machine."""

from __future__ import annotations

from dualflow.backends.llvm.product import gemm_or_blas
from dualflow.backends.llvm.runtime import cache_sizes, target
from dualflow.backends.runtime import switches, thread_count
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.options import CompileOptions


def capabilities() -> Capabilities:
    """The capabilities of the LLVM backend on this machine: vectors, caches, threads, products."""
    has_own_gemm = gemm_or_blas.uses_own_gemm()
    return Capabilities(
        strided_products=has_own_gemm,
        integer_products=has_own_gemm and target.vector_bits() >= 256,
        integer_matrices=False,
        host_calls_in_bodies=False,
        product_epilogues=False,
        windows=has_own_gemm,
        vector_bytes=target.vector_bits() // 8,
        cache_bytes=cache_sizes.cache_bytes(),
        collectives=not switches.off("collectives"),
        concurrent_calls=1 if sequential_reason() else thread_count.max_threads(),
    )


def sequential_reason() -> str:
    """The reason that calls of a graph run one after another; the empty string if they may run concurrently.

    The checked mode reports the step that runs, so there can be one only. BLAS has threads of its own.
    """
    if thread_count.max_threads() == 1:
        return "there is one thread"
    if not gemm_or_blas.uses_own_gemm():
        return "NumPy's BLAS computes matrix products, with threads of its own"
    return switches.off("concurrency")


def vector_bits(options: CompileOptions) -> int:
    """The vector width of generated code in bits."""
    requested = options.capabilities.vector_bytes
    return target.vector_bits() if requested is None else 8 * requested
