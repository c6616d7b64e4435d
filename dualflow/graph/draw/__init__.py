"""Pictures of graphs."""

from __future__ import annotations

import os
from importlib import import_module

from dualflow.graph.ir import PICTURE, SVG, Graph


def install() -> None:
    """Fill the slots of pictures. The first picture imports the implementation."""
    PICTURE.fill(_draw)
    SVG.fill(_svg)


def _draw(graph: Graph, path: str | os.PathLike[str]) -> None:
    import_module("dualflow.graph.draw.drawing").draw(graph, path)


def _svg(graph: Graph) -> str:
    picture: str = import_module("dualflow.graph.draw.drawing").svg(graph)
    return picture
