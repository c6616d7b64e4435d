"""Pictures of graphs, ``graph.draw("step.svg")``: as SVG, or by matplotlib as png and pdf.

The file is written atomically.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from dualflow.core.atomic_files import write_atomically
from dualflow.core.errors import InvalidArgumentError, NotFoundError
from dualflow.graph.draw.diagram import diagram
from dualflow.graph.draw.layout import Picture, place
from dualflow.graph.draw.matplotlib_canvas import rendered
from dualflow.graph.draw.painter import page_size
from dualflow.graph.draw.svg import svg_page

if TYPE_CHECKING:
    from dualflow.graph.ir import Graph

FORMATS: Final = ("svg", "png", "pdf")
_DPI: Final = 144
_MAX_PIXELS = 30_000


def draw(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a picture of ``graph``; see :meth:`dualflow.graph.ir.Graph.draw`."""
    path = os.fspath(path)
    kind = os.path.splitext(path)[1][1:].lower()
    if kind not in FORMATS:
        raise InvalidArgumentError(
            f"{path!r} has no extension of a picture; use one of {', '.join(f'.{x}' for x in FORMATS)}."
        )
    if kind == "svg":
        write_atomically(path, svg(graph).encode())
        return
    if find_spec("matplotlib") is None:
        raise NotFoundError(
            f"drawing a graph as .{kind} needs matplotlib, which is not installed: pip install "
            "'dualflow[draw]' (or: pip install matplotlib). An .svg needs nothing."
        )
    picture = place(diagram(graph))
    write_atomically(path, rendered(picture, graph.name, kind, _dpi(picture, graph.name, kind)))


def svg(graph: Graph) -> str:
    """The picture of ``graph`` as an ``<svg>`` element."""
    return svg_page(place(diagram(graph)), graph.name)


def _dpi(picture: Picture, title: str, kind: str) -> float:
    """The pixels per inch of a picture, fewer for a large one.

    Raises:
        InvalidArgumentError: the text of a png would not be readable.
    """
    width, height = (points / 72 for points in page_size(picture, title))
    dpi = min(_DPI, _MAX_PIXELS / max(width, height))
    if kind == "png" and dpi < _DPI / 4:
        raise InvalidArgumentError(
            f"the picture would be {width:.0f} by {height:.0f} inches, too large for readable pixels: "
            "write an .svg."
        )
    return dpi
