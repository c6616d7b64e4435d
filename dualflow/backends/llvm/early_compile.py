"""Starts LLVM before the passes run, with what every program calls and the routines of the products."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from dualflow.backends.llvm.certain_sources import probable_sources
from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.graph.ir import Graph

libraries: weakref.WeakValueDictionary[IrSource, jit.Library] = weakref.WeakValueDictionary()
"""The machine code of this process."""


@contextmanager
def compiling_early(graph: Graph) -> Iterator[jit.BackgroundCompilation]:
    """A compilation in which LLVM compiles routines that ``graph``, whose passes have not run, calls.

    Nothing is compiled that is in this process or on disk. Forks by other threads wait until the block ends.
    """
    with jit.BackgroundCompilation() as background:
        for source in probable_sources(graph):
            begin(background, source)
        yield background


def begin(background: jit.BackgroundCompilation, source: IrSource) -> None:
    """Start to compile a source, unless its code is in this process or on disk."""
    if source not in libraries:
        background.begin(source)
