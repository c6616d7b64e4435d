"""Which processor this is, without importing the compiler: that would cost more than all else at start."""

from __future__ import annotations

import functools
import sys

from dualflow.core.locks import imported

_TELLING = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features")
_FIRST_PROCESSOR_BYTES = 16384


@functools.cache
def fingerprint() -> str:
    """Text that differs wherever the compiler could choose other instructions."""
    lines = _described_by_linux()
    if lines:
        return "\n".join(lines)
    compiler = imported("dualflow.backends.llvm.runtime.compiler")
    return f"{compiler.TRIPLE} {compiler.CPU} {compiler.FEATURES}"


@functools.cache
def features() -> frozenset[str]:
    """The instruction set extensions, such as ``"avx2"`` or ``"avx512f"``, as Linux and LLVM both spell them.

    >>> "avx512f" not in features() or "avx2" in features()
    True
    """
    for line in _described_by_linux():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    compiler = imported("dualflow.backends.llvm.runtime.compiler")
    return frozenset(name[1:] for name in compiler.FEATURES.split(",") if name.startswith("+"))


def _described_by_linux() -> list[str]:
    """What the kernel says of the first processor, without the figures that change from moment to
    moment."""
    if sys.platform != "linux":
        return []
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(_FIRST_PROCESSOR_BYTES).partition("\n\n")[0]
    except OSError:
        return []
    return [line for line in first.splitlines() if line.startswith(_TELLING)]
