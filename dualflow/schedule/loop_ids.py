"""How the statements of a kernel refer to its loops, and to the blocks of these."""

from __future__ import annotations

from enum import Enum


class KernelLoop(Enum):
    """A loop of a kernel that is no loop of its nest."""

    CHUNKS = "chunks"
    """Over the chunks of a whole reduction, each with partial results of its own."""
    LANES = "lanes"
    """Over accumulators that stand side by side."""

    __hash__ = object.__hash__


class BlockLevel(Enum):
    """Blocks of a loop beside those that have a number from 0, the outermost first."""

    CHUNK = "chunk"
    """The chunk that one iteration of ``KernelLoop.CHUNKS`` reduces."""
    STRIP = "strip"
    """A strip of a lane loop."""

    __hash__ = object.__hash__


LoopId = int | KernelLoop
"""A loop: the number of a loop of the nest, or another one."""
Level = int | BlockLevel
BlockId = tuple[LoopId, Level]
"""The blocks of a loop of one level."""
