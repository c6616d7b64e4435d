"""A warning for loops that add nodes to the graph before each run."""

from __future__ import annotations

from typing import Final

from dualflow.core.warning import warn_user
from dualflow.graph.ir import Origin
from dualflow.graph_mode.graph_engine import GraphEngine

REPEATS: Final = 3
"""A line is reported when it has added nodes before this number of runs."""


class GraphGrowthWarning(UserWarning):
    """The graph grows from run to run, and each run compiles the new part."""


class Growth:
    """Counts, by line, the runs of a session before which nodes were added to the graph."""

    __slots__ = ("_counted", "_engine", "_lines", "_started")

    def __init__(self, engine: GraphEngine) -> None:
        self._engine = engine
        self._counted = 0
        self._started = False
        self._lines: dict[Origin, int] = {}

    def record_run(self) -> None:
        """Record that a run begins; warn of a line that has added nodes before ``REPEATS`` runs."""
        lines = self._engine.open.lines
        if len(lines) == self._counted:
            return
        new = {line for line in lines[self._counted :] if line is not None}
        self._counted = len(lines)
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
                "graph.finalize() makes such a line an error.",
                category=GraphGrowthWarning,
            )
