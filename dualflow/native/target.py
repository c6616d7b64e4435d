"""What the code generator needs to know of this processor."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm


@functools.cache
def vector_bits() -> int:
    """The width of the widest vector registers."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 512
    return 256 if features.get("avx2") else 128
