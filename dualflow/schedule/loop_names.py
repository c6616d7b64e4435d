"""The names that renderers give to the indices and blocks of a kernel's loops."""

from __future__ import annotations

from dualflow.schedule.loop_ids import BlockLevel, KernelLoop, Level, LoopId


def index_name(loop: LoopId) -> str:
    """The name of a loop's index."""
    match loop:
        case KernelLoop.CHUNKS:
            return "chunk"
        case KernelLoop.LANES:
            return "lane"
        case number:
            return f"i{number}"


def block_suffix(loop: LoopId, level: Level) -> str:
    """The suffix of the variables of a block."""
    name = "_chunks" if loop is KernelLoop.CHUNKS else str(loop)
    if level is BlockLevel.STRIP:
        return f"{name}_strip"
    return name if level is BlockLevel.CHUNK else f"{name}_{level}"
