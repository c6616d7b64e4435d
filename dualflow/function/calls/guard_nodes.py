"""The guards of a trace as nodes of the graph that is compiled for all sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.size_functions import substitute
from dualflow.core.symbolic_sizes import SizeVariable, SymInt
from dualflow.graph.ir import GraphBuilder, Value
from dualflow.graph.size_guards import SizeGuards
from dualflow.graph.symbolic_size_ops import GUARD_SIZES


def record_guards(guards: SizeGuards, inputs: Sequence[Value], builder: GraphBuilder) -> None:
    """Add a node for each guard of symbolic sizes, except those that equal axes decide already."""
    sizes: dict[SizeVariable, Any] = {
        variable: inputs[place].spec.shape[axis] for variable, (place, axis) in guards.axes.items()
    }
    for guard in guards.guards:
        x, y = substitute(guard.x, sizes), substitute(guard.y, sizes)
        if isinstance(x - y, SymInt):
            attrs = {"x": x, "y": y, "equality": guard.equality, "outcome": guard.outcome}
            builder.add(GUARD_SIZES, [], attrs)
