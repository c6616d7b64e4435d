"""Compiles modules on other threads while this one runs passes and writes text.

The other threads also load LLVM, which takes 7 ms.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Self

from dualflow.backends.llvm.runtime import jit, target
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.runtime.llvm_access import llvm_lock
from dualflow.backends.llvm.runtime.parallel_compile import (
    MAX_THREADS,
    Compile,
    CompileQueue,
    ObjectCode,
    threads_for,
)
from dualflow.backends.runtime import object_cache


@contextlib.contextmanager
def compilation(vector_bits: int, threads: int = MAX_THREADS) -> Iterator[CompileQueue]:
    """A compilation to which modules can be added; holds LLVM's lock until the block ends.

    Its results raise InternalError for text that LLVM rejects.
    """
    with llvm_lock(), CompileQueue(lambda: _compiler(vector_bits), threads_for(threads)) as queue:
        yield queue


def _compiler(vector_bits: int) -> AbstractContextManager[Compile]:
    """A compiler for one thread. The thread that has begun the compilation holds the lock of ``imported``."""
    building: AbstractContextManager[Compile] = import_module(
        "dualflow.backends.llvm.runtime.compiler"
    ).compiler_of_thread(vector_bits)
    return building


class BackgroundCompilation:
    """A context that compiles sources while others are emitted; skips those that are in the cache.

    Attributes:
        absent: the keys of the sources that it compiles.
    """

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._begun: set[IrSource] = set()
        self.absent: dict[IrSource, str] = {}
        self._compilation: CompileQueue | None = None
        self._objects: dict[IrSource, ObjectCode] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.close()

    def begin(self, source: IrSource) -> None:
        """Start to compile a source, unless it was added before or is in the cache."""
        if source in self._begun:
            return
        self._begun.add(source)
        key = jit.source_key(source)
        if not object_cache.has(key):
            self.absent[source] = key
            if self._compilation is None:
                self._compilation = self._stack.enter_context(compilation(target.vector_bits()))
            self._compilation.add(source.text)

    def results(self) -> dict[IrSource, ObjectCode]:
        """The compiled objects; ends the compilation.

        Raises InternalError for text that LLVM rejects.
        """
        if self._compilation is not None and not self._objects:
            self._objects.update(zip(self.absent, self._compilation.results(), strict=True))
        return self._objects
