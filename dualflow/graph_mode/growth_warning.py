"""The trap of lazy loading: a loop that adds nodes to the graph each time before it runs it."""

from __future__ import annotations

from typing import Final

from dualflow.core.warning import warn_user
from dualflow.graph.ir import Origin
from dualflow.graph_mode.graph_engine import GraphEngine

REPEATS: Final = 3
"""How often a line adds nodes between runs before it is taken for a loop's."""


class GraphGrowthWarning(UserWarning):
    """The graph grows from run to run, and each run compiles the new part."""


class Growth:
    """What has been added to a graph between a session's runs, by line."""

    __slots__ = ("_engine", "_lines", "_seen", "_started")

    def __init__(self, engine: GraphEngine) -> None:
        self._engine = engine
        self._seen = 0
        self._started = False
        self._lines: dict[Origin, int] = {}

    def look(self) -> None:
        """Note that a run begins; warn of a line that has added nodes before each of several."""
        lines = self._engine.open.lines
        if len(lines) == self._seen:
            return
        new = {line for line in lines[self._seen :] if line is not None}
        self._seen = len(lines)
        if not self._started:
            self._started = True
            return
        for line in new:
            self._lines[line] = self._lines.get(line, 0) + 1
        often = [line for line in new if self._lines[line] == REPEATS]
        if often:
            first = min(often, key=lambda line: (line.file, line.line))
            warn_user(
                f"The graph grows at each run: {first} has added nodes before each of {REPEATS} runs, and it "
                f"has {len(lines)} nodes now. Build the graph once, before the loop, and only run it there; "
                "graph.finalize() turns such a line into an error.",
                category=GraphGrowthWarning,
            )
