"""Graphs through their complete texts."""

from __future__ import annotations

from typing import Any

from dualflow.graph.ir import Graph
from dualflow.graph.parser import Resolver, parse
from dualflow.graph.printer import Storage, complete_text


class Kept:
    """Values by the names under which a text refers to them."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def name(self, value: Any) -> str:
        if not any(v is value for v in self.values):
            self.values.append(value)
        return f"kept/{next(i for i, v in enumerate(self.values) if v is value)}"

    def value(self, name: str) -> Any:
        return self.values[int(name.removeprefix("kept/"))]


def read_back(graph: Graph) -> Graph:
    """The graph, through its complete text."""
    kept = Kept()
    storage = Storage(kept.name, kept.name)
    text = complete_text(graph, storage)
    resolver = Resolver(
        source=lambda *captured: kept.value(captured[-1]), constant=lambda name, spec: kept.value(name)
    )
    again = parse(text, resolver)
    assert complete_text(again, storage) == text
    return again
