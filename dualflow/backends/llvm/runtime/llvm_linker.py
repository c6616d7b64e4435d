"""LLVM's linker: a portable way to put objects into memory, where our own (``elf``) can't.

It stands on llvmlite's classes, which take 25 ms to import, so ``jit`` imports this module when it needs it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence

import llvmlite.binding as llvm

from dualflow.backends.llvm.runtime import compiler
from dualflow.backends.llvm.runtime.llvm_access import llvm_lock
from dualflow.core.errors import InternalError


class Loaded:
    """An object that LLVM has put into memory."""

    def __init__(self, addresses: Mapping[str, int], tracker: llvm.ResourceTracker) -> None:
        self.addresses = dict(addresses)
        self._tracker = tracker

    def unload(self) -> None:
        """Free the memory."""
        with llvm_lock():
            self._tracker.close()


def load(codes: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int]) -> Loaded:
    """Put objects into memory, on any platform that LLVM knows; C's functions are found in the process.

    Each call has an LLJIT of its own: a shared one would keep a dead library's tables for ever.
    """
    with llvm_lock():
        return _load(codes, exports, imports)


# The functions below run with the lock held; all of LLVM's objects that they make are gone when they return.


def _load(codes: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int]) -> Loaded:
    linker = llvm.create_lljit_compiler(_target(), use_jit_link=_use_jit_link(), suppress_errors=True)
    builder = llvm.JITLibraryBuilder()
    for code in codes:
        builder.add_object_img(code)
    for name, address in imports.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    try:
        tracker = builder.link(linker, "kernels")
    except RuntimeError as refusal:
        raise InternalError(f"a kernel can't be linked: {refusal}") from refusal.with_traceback(None)
    return Loaded({name: tracker[name] for name in exports}, tracker)


@functools.cache
def _target() -> llvm.TargetMachine:
    """What the linker asks about this processor; made once, and it stays."""
    target = llvm.Target.from_triple(compiler.TRIPLE)
    return target.create_target_machine(
        compiler.CPU,
        compiler.FEATURES,
        compiler.CODEGEN_LEVEL,
        compiler.RELOCATION,
        compiler.CODE_MODEL,
        jit=True,
    )


def _use_jit_link() -> bool:
    # One slab per library keeps code within reach of its constants; JITLink has no COFF support to rely on.
    return sys.platform != "win32"
