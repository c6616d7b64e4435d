"""Pictures of graphs, ``graph.draw("step.svg")``: matplotlib paints the layout of ``layout.py``.

The file is written atomically.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.atomic_files import write_atomically
from dualflow.core.errors import InvalidArgumentError, NotFoundError
from dualflow.core.records import NamedTuple
from dualflow.graph.draw.diagram import Kind, diagram
from dualflow.graph.draw.layout import FONT, LINE, PAD, SMALL, Picture, PlacedBox, Segment, place, text_width

if TYPE_CHECKING:
    from dualflow.graph.ir import Graph

FORMATS: Final = ("svg", "png", "pdf")
_MARGIN = 12.0
_HEAD = 4.0
_TITLE = 20.0
_DPI = 144
_MAX_PIXELS = 30_000
_FONT: Final = "DejaVu Sans Mono"


class Style(NamedTuple):
    """The style of a kind of box: its colour, and its outline, which is distinguishable without colour."""

    fill: str
    width: float = 0.8
    dashes: str = "solid"


STYLES: Final[dict[Kind, Style]] = {
    "input": Style("#eceff1"),
    "variable": Style("#fff3cd", 1.8),
    "op": Style("#ffffff"),
    "effect": Style("#fde2e2", 0.8, "dashed"),
    "kernel": Style("#e3f2e6"),
    "control": Style("#e4ecfb", 1.4),
    "group": Style("#f3e8f7", 1.4),
    "update": Style("#fff3cd", 1.8, "dashed"),
    "result": Style("#eceff1"),
    "reference": Style("#ffffff", 0.8, "dotted"),
}
TEXT: Final = ("#000000", "#455a64")
"""The colours of titles and of all other text."""

_EDGE: Final = "#455a64"
_FRAME: Final = "#cfd8dc"
_WIRE: Final = "#78909c"


def draw(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a picture of ``graph``; see :meth:`dualflow.graph.ir.Graph.draw`."""
    path = os.fspath(path)
    kind = os.path.splitext(path)[1][1:].lower()
    if kind not in FORMATS:
        raise InvalidArgumentError(
            f"{path!r} has no extension of a picture; use one of {', '.join(f'.{x}' for x in FORMATS)}."
        )
    if find_spec("matplotlib") is None:
        raise NotFoundError(
            "drawing a graph needs matplotlib, which is not installed: pip install 'dualflow[draw]' (or: pip "
            "install matplotlib). print(graph) shows it as text."
        )
    picture = place(diagram(graph))
    width, height = _inches(picture, graph.name)
    dpi = min(_DPI, _MAX_PIXELS / max(width, height))
    if kind == "png" and dpi < _DPI / 4:
        raise InvalidArgumentError(
            f"the picture would be {width:.0f} by {height:.0f} inches, too large for readable pixels: "
            "write an .svg."
        )
    content = io.BytesIO()
    _Painter(picture, graph.name).save(content, kind, dpi)
    write_atomically(path, content.getbuffer())


def svg(graph: Graph) -> str | None:
    """The picture of ``graph`` as an ``<svg>`` element; None without matplotlib."""
    if find_spec("matplotlib") is None:
        return None
    content = io.BytesIO()
    _Painter(place(diagram(graph)), graph.name).save(content, "svg", _DPI)
    text = content.getvalue().decode()
    return text[text.index("<svg") :]


def _inches(picture: Picture, title: str) -> tuple[float, float]:
    """The size of a picture with its title and margins."""
    width = max(picture.width, text_width(f"graph {title}", FONT + 2)) + 2 * _MARGIN
    return width / 72, (picture.height + 2 * _MARGIN + _TITLE) / 72


class _Painter:
    """Paints one picture on a matplotlib figure, in points."""

    def __init__(self, picture: Picture, title: str) -> None:
        self._library: ModuleType = import_module("matplotlib")
        self._patches: ModuleType = import_module("matplotlib.patches")
        self._path: Any = import_module("matplotlib.path").Path
        width, height = _inches(picture, title)
        self._figure: Any = import_module("matplotlib.figure").Figure((width, height), facecolor="white")
        self._axes: Any = self._figure.add_axes((0, 0, 1, 1))
        self._axes.set_axis_off()
        self._axes.set_xlim(0, width * 72)
        self._axes.set_ylim(height * 72, 0)
        self._text(f"graph {title}", _MARGIN, _MARGIN + FONT / 2, FONT + 2, ha="left", weight="bold")
        self._picture(picture, _MARGIN, _MARGIN + _TITLE, 1)

    def save(self, file: Any, kind: str, dpi: float) -> None:
        """Write the figure. The file contains no date, so equal graphs give equal files."""
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        with self._library.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dualflow"}):
            self._figure.savefig(file, format=kind, dpi=dpi, metadata=metadata)

    def _picture(self, picture: Picture, x: float, y: float, order: int) -> None:
        self._wires(picture.segments, x, y, order)
        for placed in picture.boxes:
            self._box(placed, x, y, order)
        for label in picture.labels:
            background = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
            self._text(
                label.text,
                x + label.x,
                y + label.y,
                SMALL,
                color=TEXT[1],
                bbox=background,
                zorder=order + 0.9,
            )

    def _box(self, placed: PlacedBox, x: float, y: float, order: int) -> None:
        left, top = x + placed.x, y + placed.y
        self._rectangle(left, top, placed.width, placed.height, order + 0.5, STYLES[placed.box.kind])
        middle, line = left + placed.width / 2, top + PAD + FONT * LINE / 2
        self._text(placed.box.title, middle, line, FONT, weight="bold", zorder=order + 0.6)
        for detail in placed.box.details:
            line += SMALL * LINE
            self._text(detail, middle, line, SMALL, color=TEXT[1], zorder=order + 0.6)
        for panel in placed.panels:
            at = x + panel.x, y + panel.y
            self._rectangle(*at, panel.width, panel.height, order + 0.6, Style("#ffffff"), _FRAME)
            style = {"ha": "left", "color": TEXT[1], "zorder": order + 0.7}
            self._text(panel.title, at[0] + PAD / 2, at[1] + SMALL * 0.8, SMALL, **style)
            self._picture(panel.picture, x + panel.left, y + panel.top, order + 1)

    def _rectangle(
        self, x: float, y: float, width: float, height: float, order: float, style: Style, edge: str = _EDGE
    ) -> None:
        self._axes.add_artist(
            self._patches.FancyBboxPatch(
                (x, y),
                width,
                height,
                boxstyle="round,pad=0,rounding_size=4",
                facecolor=style.fill,
                edgecolor=edge,
                linewidth=style.width,
                linestyle=style.dashes,
                zorder=order,
            )
        )

    def _wires(self, segments: Sequence[Segment], x: float, y: float, order: float) -> None:
        """Draw all wires of a picture as one path, and all arrowheads as another: many paths are slow."""
        path = self._path
        lines: list[tuple[float, float]] = []
        heads: list[tuple[float, float]] = []
        for segment in segments:
            x0, y0, x1, y1 = x + segment.x0, y + segment.y0, x + segment.x1, y + segment.y1
            middle = (y0 + y1) / 2
            lines += [(x0, y0), (x0, middle), (x1, middle), (x1, y1)]
            if segment.last:
                heads += [(x1, y1), (x1 - _HEAD / 2, y1 - _HEAD), (x1 + _HEAD / 2, y1 - _HEAD), (x1, y1)]
        curve = [path.MOVETO, path.CURVE4, path.CURVE4, path.CURVE4]
        triangle = [path.MOVETO, path.LINETO, path.LINETO, path.CLOSEPOLY]
        for points, codes, fill in ((lines, curve, False), (heads, triangle, True)):
            if points:
                drawn = path(points, codes * (len(points) // 4))
                style = {"facecolor": _WIRE if fill else "none", "edgecolor": _WIRE, "linewidth": 0.9}
                self._axes.add_artist(self._patches.PathPatch(drawn, zorder=order, **style))

    def _text(self, text: str, x: float, y: float, size: float, **style: Any) -> None:
        options = {
            "ha": "center",
            "va": "center",
            "fontfamily": _FONT,
            "fontsize": size,
            "color": TEXT[0],
            **style,
        }
        self._axes.text(x, y, text, parse_math=False, **options)
