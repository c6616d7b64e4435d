"""Pictures of graphs as png and pdf, by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from dualflow.graph.draw.diagram import Box
from dualflow.graph.draw.layout import Picture, Segment
from dualflow.graph.draw.painter import ARROW, FONT_SIZES, Rectangle, TextRole, page_size, paint_page
from dualflow.graph.draw.styles import LIGHT, Style, style_of

_PANEL: Final = Style(LIGHT.paper, "", edge=LIGHT.frame)


def rendered(picture: Picture, title: str, kind: str, dpi: float) -> memoryview:
    """The file of a picture, which contains no date, so that equal graphs give equal files.

    Args:
        picture: the picture.
        title: its heading.
        kind: "png" or "pdf".
        dpi: the pixels per inch of a png.
    """
    width, height = page_size(picture, title)
    figure: Any = import_module("matplotlib.figure").Figure((width / 72, height / 72), facecolor=LIGHT.paper)
    axes: Any = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    paint_page(_MatplotlibCanvas(axes), picture, title)
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=dpi, metadata={"CreationDate": None} if kind == "pdf" else None)
    return content.getbuffer()


class _MatplotlibCanvas:
    """Draws shapes on matplotlib's axes, whose unit is a point."""

    def __init__(self, axes: Any) -> None:
        self._axes = axes
        self._patches: ModuleType = import_module("matplotlib.patches")
        self._path: Any = import_module("matplotlib.path").Path
        self._drawn = 0

    def wires(self, segments: Sequence[Segment], x: float, y: float) -> None:
        """Draw all wires as one path, and all arrowheads as another: many paths are slow."""
        path = self._path
        lines: list[tuple[float, float]] = []
        heads: list[tuple[float, float]] = []
        for segment in segments:
            x0, y0, x1, y1 = x + segment.x0, y + segment.y0, x + segment.x1, y + segment.y1
            middle = (y0 + y1) / 2
            lines += [(x0, y0), (x0, middle), (x1, middle), (x1, y1)]
            if segment.last:
                heads += [(x1, y1), (x1 - ARROW / 2, y1 - ARROW), (x1 + ARROW / 2, y1 - ARROW), (x1, y1)]
        curve = [path.MOVETO, path.CURVE4, path.CURVE4, path.CURVE4]
        triangle = [path.MOVETO, path.LINETO, path.LINETO, path.CLOSEPOLY]
        for points, codes, fill in ((lines, curve, False), (heads, triangle, True)):
            if points:
                drawn = path(points, codes * (len(points) // 4))
                style = {"facecolor": LIGHT.wire if fill else "none", "edgecolor": LIGHT.wire}
                self._add(self._patches.PathPatch(drawn, linewidth=0.9, **style))

    def begin_box(self, box: Box, place: Rectangle) -> None:
        self._rectangle(place, style_of(box))

    def end_box(self) -> None:
        pass

    def panel(self, place: Rectangle) -> None:
        self._rectangle(place, _PANEL)

    def text(self, text: str, x: float, y: float, role: TextRole) -> None:
        options: dict[str, Any] = {"color": LIGHT.title if role in ("heading", "title") else LIGHT.text}
        if role in ("heading", "title"):
            options["weight"] = "bold"
        if role == "label":
            options["bbox"] = {"facecolor": LIGHT.paper, "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
        options |= {"ha": "left" if role in ("heading", "head") else "center", "va": "center"}
        options |= {"fontfamily": "DejaVu Sans Mono", "fontsize": FONT_SIZES[role], "parse_math": False}
        self._axes.text(x, y, text, zorder=self._order(), **options)

    def _rectangle(self, place: Rectangle, style: Style) -> None:
        self._add(
            self._patches.FancyBboxPatch(
                (place.x, place.y),
                place.width,
                place.height,
                boxstyle="round,pad=0,rounding_size=4",
                facecolor=style.fill,
                edgecolor=style.edge or LIGHT.edge,
                linewidth=style.width,
                linestyle=(0, style.dashes) if style.dashes else "solid",
            )
        )

    def _add(self, artist: Any) -> None:
        artist.set_zorder(self._order())
        self._axes.add_artist(artist)

    def _order(self) -> int:
        """The position of the next shape, which is drawn over all earlier ones."""
        self._drawn += 1
        return self._drawn
