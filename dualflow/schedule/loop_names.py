"""Names of loop indices and blocks in the text of kernels, and indices of elements, for Python and C."""

from __future__ import annotations

from collections.abc import Callable

from dualflow.schedule.kernel_statements import Bound, Edge, ElementAccess, LaunchParameter, Register
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


def bound_text(bound: Bound) -> str:
    """The name of a bound of a loop: of the edge of a block, a launch parameter, or an end of the launch."""
    if isinstance(bound, Edge):
        return f"{'end' if bound.end else 'begin'}{block_suffix(bound.loop, bound.level)}"
    return f"n{bound.number}" if isinstance(bound, LaunchParameter) else bound.value


def index_text(access: ElementAccess, register: Callable[[Register], str]) -> str:
    """The index of an element in its buffer, a sum; ``register`` returns the name of a register."""
    terms = [f"n{access.offset.number}"] if access.offset is not None else []
    begins = {start.loop: bound_text(start) for start in access.block_starts}
    for loop, stride in access.terms:
        index = f"({index_name(loop)} - {begins[loop]})" if loop in begins else index_name(loop)
        terms.append(index if stride is None else f"{index} * n{stride.number}")
    if access.gather_index is not None:
        position, stride = access.gather_index
        terms.append(f"{register(position)} * n{stride.number}")
    return " + ".join(terms) or "0"
