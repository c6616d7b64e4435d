"""A description of the processor, made without an import of the compiler, which is slow."""

from __future__ import annotations

import functools
import sys

from dualflow.core.locks import imported

_IDENTIFYING_FIELDS = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features")
_FIRST_PROCESSOR_BYTES = 16384


@functools.cache
def fingerprint() -> str:
    """Text that differs between processors for which the compiler may select different instructions."""
    lines = _linux_description()
    if lines:
        return "\n".join(lines)
    compiler = imported("dualflow.backends.llvm.runtime.compiler")
    return f"{compiler.TRIPLE} {compiler.CPU} {compiler.FEATURES}"


@functools.cache
def features() -> frozenset[str]:
    """The instruction set extensions, such as ``"avx2"`` or ``"avx512f"``, by the names of Linux and LLVM.

    >>> "avx512f" not in features() or "avx2" in features()
    True
    """
    for line in _linux_description():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    compiler = imported("dualflow.backends.llvm.runtime.compiler")
    return frozenset(name[1:] for name in compiler.FEATURES.split(",") if name.startswith("+"))


def _linux_description() -> list[str]:
    """The identifying lines of the first processor in /proc/cpuinfo, without values that change over time."""
    if sys.platform != "linux":
        return []
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(_FIRST_PROCESSOR_BYTES).partition("\n\n")[0]
    except OSError:
        return []
    return [line for line in first.splitlines() if line.startswith(_IDENTIFYING_FIELDS)]
