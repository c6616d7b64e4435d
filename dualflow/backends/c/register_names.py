"""Names of registers in a kernel, and the registers that are assigned repeatedly."""

from __future__ import annotations

import re

from dualflow.graph.ir import Node
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_statements import Register
from dualflow.schedule.registers import written


def accumulators(kernel: Kernel) -> frozenset[Register]:
    """All accumulators of reductions of a kernel."""
    inits = [s for s in ks.walk_kernel(kernel.body) if isinstance(s, ks.ReduceInit)]
    return frozenset(r for s in inits for r in s.accumulator)


def reassigned_registers(kernel: Kernel) -> frozenset[Register]:
    """The registers that are assigned more than once: accumulators, some of which are loaded from memory."""
    updates = [s for s in ks.walk_kernel(kernel.body) if isinstance(s, ks.ReduceUpdate | ks.ReduceCombine)]
    return frozenset(r for s in updates for r in s.accumulator)


def register_names(kernel: Kernel) -> dict[int, str]:
    """A name for each register: the op that computes it, and its number."""
    names: dict[int, str] = {}
    for statement in ks.walk_kernel(kernel.body):
        node: Node | None = getattr(statement, "node", None)
        for register in written(statement):
            if isinstance(statement, ks.Load | ks.MaskedLoad):
                load = statement if isinstance(statement, ks.Load) else statement.load
                names.setdefault(register.number, f"x{load.access.buffer}_{register.number}")
            elif node is not None:
                op_name = re.sub(r"\W", "_", node.op.name, flags=re.ASCII)
                names.setdefault(register.number, f"{op_name}_{register.number}")
    return names
