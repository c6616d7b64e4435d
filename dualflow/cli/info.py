"""What dualflow runs on: ``python -m dualflow info``."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import dualflow
from dualflow.backends.llvm.facilities import facilities
from dualflow.backends.llvm.product import blas
from dualflow.backends.llvm.runtime import object_cache, target, threads
from dualflow.eager.tensor import EagerTensor
from dualflow.function.inspect.compare_report import size


def table() -> str:
    """Versions, processor, threads, BLAS, the fast ways that work here and the object cache, a line each."""
    multiplies = blas.find()
    works = {facility.name: facility for facility in facilities(EagerTensor)}
    rows = [
        ("dualflow", f"{dualflow.version.DUALFLOW} in {os.path.dirname(dualflow.__file__)}"),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()})"),
        *((name, _version(name.lower())) for name in ("NumPy", "Numba", "llvmlite", "networkx")),
        ("processor", f"{_processor()}, {os.cpu_count()} logical"),
        ("vectors", f"{target.vector_bits()} bits"),
        ("threads", _threads(threads.max_threads() if threads.available() else 1)),
        (
            "BLAS",
            f"{multiplies.name}, {multiplies.int_bits}-bit integers" if multiplies else "none that is known",
        ),
        *((name, works[name].state) for name in ("builtin call", "linker", "matrix product")),
        ("object cache", _cache(object_cache.folder(), object_cache.obstacle())),
    ]
    return "\n".join(f"{name:<16}{value}" for name, value in rows)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The processor's own name where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        found = []
    return found[0] if found else platform.processor() or platform.machine()


def _threads(most: int) -> str:
    return f"up to {most} for a kernel (DUALFLOW_NUM_THREADS sets it)" if most > 1 else "1 for a kernel"


def _cache(folder: str | None, obstacle: str) -> str:
    if folder is None or obstacle:
        return f"off ({obstacle})"
    try:
        with os.scandir(folder) as entries:
            sizes = [entry.stat().st_size for entry in entries if entry.name.endswith(".dfo")]
    except OSError:
        return f"{folder} (empty)"
    return f"{folder} ({len(sizes)} objects, {size(sum(sizes))})"
