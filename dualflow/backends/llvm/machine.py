"""A description of the machine: the processor, LLVM, the BLAS, and the object cache."""

from __future__ import annotations

import os
import platform
from typing import Any

from dualflow.backends.llvm.runtime import target, threads
from dualflow.backends.runtime import object_cache
from dualflow.core import blas
from dualflow.core.locks import imported


def machine() -> dict[str, Any]:
    """A dict with the keys ``processor``, ``threads``, ``llvm``, ``blas`` and ``cache``."""
    llvm_version_check = imported("dualflow.backends.llvm.runtime.llvm_version_check")
    blas_library = blas.find()
    pool = threads.status()
    return {
        "processor": {
            "name": _processor(),
            "logical": os.cpu_count() or 1,
            "vector_bits": target.vector_bits(),
            "widest_vector_bits": target.widest(),
        },
        "threads": {
            "most": threads.max_threads(),
            "now": pool.threads,
            "workers_started": pool.workers_started,
        },
        "llvm": {"installed": llvm_version_check.llvm_version(), "needed": str(llvm_version_check.LLVM)},
        "blas": None
        if blas_library is None
        else {"name": blas_library.name, "integer_bits": blas_library.int_bits},
        "cache": _cache(),
    }


def _processor() -> str:
    """The processor's model name, if the system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _cache() -> dict[str, Any]:
    sizes = object_cache.sizes()
    return {
        "folder": object_cache.folder(),
        "trusted": not object_cache.unavailable_reason(),
        "objects": len(sizes),
        "bytes": sum(sizes),
    }
