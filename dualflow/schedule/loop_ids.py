"""Ids of the loops of a kernel and of their blocks."""

from __future__ import annotations

from enum import Enum


class KernelLoop(Enum):
    """The loops that splitting adds to a kernel: over chunks of a reduction, and over lanes."""

    CHUNKS = "chunks"
    """Over the chunks of a reduction, each of which has partial results."""
    LANES = "lanes"
    """Over the accumulators of a strip: there is one for each iteration of the strip."""

    __hash__ = object.__hash__


class BlockLevel(Enum):
    """Levels of blocks with a name; other levels are numbers from 0, the outermost first."""

    CHUNK = "chunk"
    """The chunk that one iteration of ``KernelLoop.CHUNKS`` reduces."""
    STRIP = "strip"
    """A strip of a strip-mined lane loop."""

    __hash__ = object.__hash__


LoopId = int | KernelLoop
"""A loop of the nest, by its number, or another loop of the kernel."""
Level = int | BlockLevel
BlockId = tuple[LoopId, Level]
"""The blocks of one level of a loop."""
