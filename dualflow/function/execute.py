"""The one place that decides how a graph runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph

Array = np.ndarray[Any, Any]


class PartReport(Protocol):
    """How one part of a graph runs: ``native``, ``numpy`` or ``python``; what it does; why not natively."""

    @property
    def kind(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def reason(self) -> str: ...


class Executable(Protocol):
    """A graph that can be called."""

    @property
    def parts(self) -> Sequence[PartReport]:
        """How each part of the graph runs."""

    def run(self, arrays: list[Array]) -> list[Array]:
        """The outputs for one array per input; the buffers of updated variables are written in place."""


class _Part(NamedTuple):
    kind: str
    what: str
    reason: str


class Interpreted:
    """A graph run node by node through NumPy."""

    __slots__ = ("_graph", "_written", "parts")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._written = [graph.inputs.index(u.input) for u in graph.updates]
        self.parts = (_Part("numpy", f"{len(graph.nodes)} ops", "run node by node"),)

    def run(self, arrays: list[Array]) -> list[Array]:
        buffers = [arrays[i] for i in self._written]
        results = [_apart(x, buffers) for x in evaluate(self._graph, arrays)]
        count = len(self._graph.outputs)
        for buffer, new in zip(buffers, results[count:], strict=True):
            np.copyto(buffer, new)
        return results[:count]


def _apart(x: Array, buffers: Sequence[Array]) -> Array:
    """``x``, copied if writing to ``buffers`` would change it."""
    return x.copy() if any(np.may_share_memory(x, b) for b in buffers) else x


def make_executable(graph: Graph) -> Executable:
    """``graph``, which all passes have gone over, as something that runs."""
    return Interpreted(graph)
