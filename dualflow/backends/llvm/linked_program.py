"""A program in this process: its image, the addresses of its functions, and how to compute the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dualflow.backends.llvm.program_image import ProgramImage
from dualflow.core.records import NamedTuple
from dualflow.graph.compiled import GraphInputs

if TYPE_CHECKING:
    from dualflow.backends.llvm.program import Program
    from dualflow.backends.llvm.runtime.jit import Library
    from dualflow.backends.llvm.runtime.threads import Pool
    from dualflow.graph.ir import Graph
    from dualflow.schedule.planned import Plan


class Lowered(NamedTuple):
    """What a program was compiled from: the graph after all passes, its plan, and the text of the code."""

    graph: Graph
    plan: Plan
    program: Program


class LinkedProgram(NamedTuple):
    """A program whose machine code is in memory.

    Attributes:
        image: what calls read.
        inputs: the inputs of the graph.
        functions: the addresses of the exported functions, by name.
        libraries: the machine code.
        new_library: the library that was linked for this program; None if the process had all code already.
        pool: the thread pool; None if no loop is parallel.
        loaded: whether the program is from the disk.
        lower: returns what the image was made from. For a program from the disk it runs the passes, the plan
            and the writer, which errors and reports need.
    """

    image: ProgramImage
    inputs: GraphInputs
    functions: Mapping[str, int]
    libraries: tuple[Library, ...]
    new_library: Library | None
    pool: Pool | None
    loaded: bool
    lower: Callable[[], Lowered]
