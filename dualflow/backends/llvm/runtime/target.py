"""What the code generator needs to know of this processor."""

from __future__ import annotations

import functools

from dualflow.backends.llvm.runtime import cpu_fingerprint


@functools.cache
def vector_bits() -> int:
    """The width of the widest vector registers."""
    features = cpu_fingerprint.features()
    if "avx512f" in features:
        return 512
    return 256 if "avx2" in features else 128
