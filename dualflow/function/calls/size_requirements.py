"""The comparisons of sizes without which a program fails, recorded as few nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dualflow.core.records import NamedTuple
from dualflow.graph import origin
from dualflow.graph.ir import GraphBuilder
from dualflow.graph.symbolic_size_ops import REQUIRE_SIZE
from dualflow.sizes.size_functions import required_least
from dualflow.sizes.symbolic_sizes import SizeVariable, size_variables


class _Least(NamedTuple):
    """A node that requires a size to be ``least`` or larger, by its number."""

    least: int
    node_index: int


class SizeRequirements:
    """Records comparisons of sizes as ``require_size`` nodes, and drops those that another one implies.

    An unrolled loop reads ``x[0]``, ``x[1]``, ...: the first node then has the least size that all of them
    require. It fails for the same calls, and before any effect that the last one would precede.

    Args:
        builder: gets the nodes.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder
        self._recorded: set[tuple[str, str, bool]] = set()  # texts: operators of sizes may record guards
        self._least: dict[str, _Least] = {}

    def add(self, attrs: Mapping[str, Any], arguments: set[SizeVariable]) -> None:
        """Add the comparison of a ``require_size`` node; ``arguments`` are the variables that calls bind."""
        x, y, repeats = attrs["x"], attrs["y"], attrs["repeats"]
        key = repr(x), repr(y), repeats
        if key in self._recorded:
            return
        self._recorded.add(key)
        least = None if repeats or not size_variables(attrs["shapes"]) <= arguments else required_least(x, y)
        earlier = self._least.get(key[0])
        if least is None:
            self._append(attrs)
        elif earlier is None:
            self._least[key[0]] = _Least(least, len(self._builder.nodes))
            self._append(attrs)
        elif least > earlier.least:
            self._append(attrs)
            nodes = self._builder.nodes
            nodes[earlier.node_index] = nodes.pop()
            self._least[key[0]] = _Least(least, earlier.node_index)

    def _append(self, attrs: Mapping[str, Any]) -> None:
        self._builder.add(REQUIRE_SIZE, [], attrs, origin.caller())

    def keep_before_effect(self) -> None:
        """Later comparisons don't change earlier nodes: an effect is recorded next."""
        self._least.clear()
