"""Compile options: read once when a compile begins, and passed by value.

Passes, plans and backends read these properties of the machine only here, so that equal options give equal
graphs on every machine.
"""

from __future__ import annotations

from typing import Final

from dualflow.core.records import dataclass
from dualflow.graph.capabilities import ALL, Capabilities
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.user_rewrites import Rewrite

STACK_BYTES: Final = 64 << 20
"""The maximum number of bytes of new stacks that a pass adds to a loop."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The options by which a graph is compiled.

    Attributes:
        backend: the backend's name; see :data:`dualflow.function.options.BACKENDS`.
        strict: whether all of the graph must run natively.
        interpret_first: whether calls run node by node through NumPy while a thread compiles.
        memory: the bytes that the process may allocate.
        kept_by_loops: the user's limit on the bytes that loops stack for their gradients; see
            :attr:`loop_budget`.
        memory_budget: the limit on the bytes that the plan of a call allocates; None for no limit.
        capabilities: those of the backend on this machine, or fewer.
        cost_model: the cost model of the processor.
        checking: whether the result of each pass, and each kernel, is verified.
        rewrites: the rewrites of users that are applied, in order.
        on_device: whether the graph has a block of a GPU: calls run there, wherever arguments are.
        soft_placement: whether an op in a block of a GPU that has no code for it runs on the host.

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
    rewrites: tuple[Rewrite, ...] = ()
    on_device: bool = False
    soft_placement: bool = True

    @property
    def loop_budget(self) -> int:
        """The bytes that loops may stack for their gradients: a quarter of the memory by default."""
        return self.memory // 4 if self.kept_by_loops is None else self.kept_by_loops

    @property
    def stack_budget(self) -> int:
        """The bytes of new stacks that a pass may add to a loop to save time."""
        return min(STACK_BYTES, self.loop_budget)
