"""The one place that decides how a graph runs: as machine code, with host calls for what has none."""

from __future__ import annotations

from dualflow.graph.ir import Graph
from dualflow.native.executable import Executable as Executable
from dualflow.native.executable import PartReport as PartReport
from dualflow.native.executable import build


def make_executable(graph: Graph) -> Executable:
    """``graph``, which all passes have gone over, as something that runs."""
    return build(graph)
