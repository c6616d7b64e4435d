"""Links objects with LLVM's linker: the fallback where ``elf`` doesn't support the platform or object.

It uses llvmlite's classes, which take 25 ms to import, so ``jit`` imports this module only for the fallback.
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
    """An object that LLVM has linked into memory."""

    def __init__(self, addresses: Mapping[str, int], tracker: llvm.ResourceTracker) -> None:
        self.addresses = dict(addresses)
        self._tracker = tracker

    def unload(self) -> None:
        """Free the memory."""
        with llvm_lock():
            self._tracker.close()


def load(codes: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int]) -> Loaded:
    """Link objects into memory on any platform of LLVM; C's functions are resolved in the process.

    Each call creates an LLJIT: a shared one would never free the tables of unloaded libraries.
    """
    with llvm_lock():
        return _load(codes, exports, imports)


# The functions below run with the lock held, and free all of LLVM's objects that they create.


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
    except RuntimeError as error:
        raise InternalError(f"a kernel can't be linked: {error}") from error.with_traceback(None)
    return Loaded({name: tracker[name] for name in exports}, tracker)


@functools.cache
def _target() -> llvm.TargetMachine:
    """LLVM's target machine for this processor, created once."""
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
