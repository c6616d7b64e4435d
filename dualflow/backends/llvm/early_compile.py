"""Starts LLVM before the passes run, with what every program calls and the routines of the products."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dualflow.backends.llvm.certain_sources import probable_sources
from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.runtime.background_compile import BackgroundCompilation
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.graph.ir import Graph

libraries: weakref.WeakValueDictionary[IrSource, jit.Library] = weakref.WeakValueDictionary()
"""The machine code of this process."""
MAX_NODES: Final = 2000
"""The largest graph whose compilation begins before the passes: no signal is handled from then to its end.

The passes take some 30 us for a node, and what begins early takes 20 ms.
"""


@contextmanager
def compiling_early(graph: Graph) -> Iterator[BackgroundCompilation]:
    """A compilation in which LLVM compiles routines that ``graph``, whose passes have not run, calls.

    Nothing is compiled that is in this process or on disk, or for a graph with more than ``MAX_NODES`` nodes.
    Forks by other threads wait until the block ends.
    """
    with BackgroundCompilation() as background:
        if len(graph.nodes) <= MAX_NODES:
            for source in probable_sources(graph):
                begin(background, source)
        yield background


def begin(background: BackgroundCompilation, source: IrSource) -> None:
    """Start to compile a source, unless its code is in this process or on disk."""
    if source not in libraries:
        background.begin(source)
