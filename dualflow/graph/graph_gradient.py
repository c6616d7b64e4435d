"""A custom gradient function as a graph, which other traces than its own can evaluate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dualflow.core.records import dataclass, field, replace
from dualflow.gradient.sweep import filled
from dualflow.graph.interpret import replay
from dualflow.graph.ir import BodySpec, Graph
from dualflow.ops.record import Effect


@dataclass(frozen=True, slots=True, eq=False)
class GraphGradient(BodySpec):
    """The rule of a ``custom_gradient`` node that evaluates a graph.

    Attributes:
        graph: maps (a cotangent of each output, the outputs, the inputs after the results) to cotangents.
        flows: for each of these inputs whether the graph returns a cotangent.
        effect: None: the graph runs only where gradients are computed.
    """

    graph: Graph
    flows: tuple[bool, ...]
    effect: Effect | None = field(init=False, repr=False, default=None)

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, *inputs: Any) -> list[Any]:
        outputs = out if isinstance(out, tuple | list) else (out,)
        cotangents = iter(replay(self.graph, [*filled(g, out), *outputs, *inputs]))
        return [next(cotangents) if flow else None for flow in self.flows]

    @property
    def bodies(self) -> tuple[tuple[str, Graph], ...]:
        return (("gradient", self.graph),)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"flows": self.flows}

    def with_bodies(self, change: Callable[[Graph], Graph]) -> GraphGradient:
        graph = change(self.graph)
        return self if graph is self.graph else replace(self, graph=graph)
