"""The fast paths of this backend: which of them work in this process, and why the others don't.

Results are the same without them, but slower. Without

* the C fast call, calls go through ctypes;
* the linker, LLVM is loaded to link;
* threads, loops run on the calling thread;
* concurrency, the calls of a graph run one after another;
* collectives, those between workers are host calls;
* the matrix product of this backend, NumPy's BLAS is called;
* the disk cache, each process compiles again;
* programs on disk, each process plans and writes them again;
* kept blocks, the system zeroes the memory of each large output.

The checked mode is listed if it is on.
"""

from __future__ import annotations

from typing import Final

from dualflow.backends.llvm import program_cache
from dualflow.backends.llvm.capabilities import sequential_reason
from dualflow.backends.llvm.product import gemm_or_blas
from dualflow.backends.llvm.runtime import block_allocator, elf, fastcall, threads
from dualflow.backends.runtime import object_cache, switches
from dualflow.core.records import dataclass


@dataclass(frozen=True, slots=True)
class FastPathReport:
    """A fast path, and whether it works in this process.

    Attributes:
        name: its name in reports.
        switch: its name in ``DUALFLOW_DISABLE``; for checks, the variable that enables them.
        on: whether it works.
        detail: the reason that it doesn't work, or how it works.
    """

    name: str
    switch: str
    on: bool
    detail: str = ""

    @property
    def state(self) -> str:
        return ("on" if self.on else "off") + (f" ({self.detail})" if self.detail else "")

    def __str__(self) -> str:
        return f"{self.name}: {self.state}"


_CHECKED_SIDES: Final = {"end": "end at protected pages", "begin": "begin after protected pages"}


def features(tensor_class: type) -> tuple[FastPathReport, ...]:
    """The fast paths of this process for tensors of ``tensor_class``.

    >>> [feature.name for feature in features(object)]  # doctest: +NORMALIZE_WHITESPACE
    ['C fast call', 'linker', 'threads', 'concurrency', 'collectives', 'matrix product', 'disk cache',
     'programs on disk', 'kept blocks']
    """
    pool = threads.status()
    no_cache = object_cache.unavailable_reason()
    side = switches.checked_side()
    checked = (
        FastPathReport("checked memory", switches.CHECK_MEMORY, True, f"buffers {_CHECKED_SIDES[side]}")
        if side
        else None
    )
    parts = (
        _unless("C fast call", "c_fast_call", fastcall.unavailable_reason(tensor_class)),
        _unless("linker", "linker", elf.unavailable_reason()),
        FastPathReport("threads", "pool", pool.threads > 1, pool.reason or f"{pool.threads} for a kernel"),
        _unless("concurrency", "concurrency", sequential_reason()),
        _unless("collectives", "collectives", switches.off("collectives")),
        FastPathReport("matrix product", "product", gemm_or_blas.uses_own_gemm(), _product()),
        FastPathReport("disk cache", "cache", not no_cache, no_cache or object_cache.folder() or ""),
        _unless("programs on disk", "programs", program_cache.unavailable_reason()),
        _unless(
            "kept blocks",
            "blocks",
            fastcall.unavailable_reason(tensor_class) or block_allocator.unavailable_reason(),
        ),
    )
    return parts if checked is None else (*parts, checked)


def _unless(name: str, switch: str, unavailable_reason: str) -> FastPathReport:
    return FastPathReport(name, switch, not unavailable_reason, unavailable_reason)


def _product() -> str:
    unavailable_reason = gemm_or_blas.unavailable_reason()
    if unavailable_reason and gemm_or_blas.uses_own_gemm():
        return "the backend's own GEMM: no BLAS was found"
    return unavailable_reason
