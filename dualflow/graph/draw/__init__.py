"""Pictures of graphs."""

from __future__ import annotations

import os
from importlib import import_module

from dualflow.graph.ir import PICTURE, Graph


def install() -> None:
    """Let :meth:`Graph.draw` draw; what it needs for that is imported by the first picture."""
    PICTURE.fill(_draw)


def _draw(graph: Graph, path: str | os.PathLike[str]) -> None:
    import_module("dualflow.graph.draw.drawing").draw(graph, path)
