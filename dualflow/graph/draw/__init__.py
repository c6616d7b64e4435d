"""Pictures of graphs."""

from __future__ import annotations

import os
from importlib import import_module

from dualflow.graph.ir import PICTURE, Graph


def install() -> None:
    """Fill the slot of :meth:`Graph.draw`. The first picture imports the implementation."""
    PICTURE.fill(_draw)


def _draw(graph: Graph, path: str | os.PathLike[str]) -> None:
    import_module("dualflow.graph.draw.drawing").draw(graph, path)
