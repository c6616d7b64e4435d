"""What a graph is compiled for: read once when a compile begins, and handed down by value.

Passes, plans and backends ask the machine nothing that is said here, so the same options make the same graph
on every machine.
"""

from __future__ import annotations

from typing import Final

from dualflow.core.records import dataclass
from dualflow.graph.capabilities import ALL, Capabilities
from dualflow.graph.cost_model import CPU, CostModel

STACK_BYTES: Final = 64 << 20
"""The most memory that passes take for the new stacks of a loop, if loops may take so much."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How a graph is compiled.

    Attributes:
        backend: what runs it; see :data:`dualflow.function.options.BACKENDS`.
        strict: whether all of it must run natively.
        interpret_first: whether calls run node by node through NumPy while a thread compiles.
        memory: the bytes that the process may take.
        kept_by_loops: the most bytes that loops may keep of their iterations, where the user has said it; see
            :attr:`loop_budget`.
        memory_budget: the most bytes that a call may take beside what it is given, by its plan; None for any.
        capabilities: what the program may hold: those of the backend on this machine, or fewer.
        cost_model: the figures of the processor by which programs are chosen.
        checking: whether what each pass makes is held against the rules of the IR, kernels against theirs.

    >>> CompileOptions(memory=1 << 30).loop_budget >> 20
    256
    >>> CompileOptions(memory=1 << 30, kept_by_loops=1 << 20).loop_budget
    1048576
    """

    backend: str = "llvm"
    strict: bool = False
    interpret_first: bool = False
    memory: int = 8 << 30
    kept_by_loops: int | None = None
    memory_budget: int | None = None
    capabilities: Capabilities = ALL
    cost_model: CostModel = CPU
    checking: bool = False

    @property
    def loop_budget(self) -> int:
        """The bytes that loops may keep of their iterations; a quarter of the memory where nothing is
        said."""
        return self.memory // 4 if self.kept_by_loops is None else self.kept_by_loops

    @property
    def stack_budget(self) -> int:
        """The bytes that a loop's new stacks may take where a pass makes them to save time."""
        return min(STACK_BYTES, self.loop_budget)
