"""Paints the layout of a picture on a canvas, of SVG or of matplotlib: the order and the places of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol
from typing import Literal as OneOf

from dualflow.core.records import NamedTuple
from dualflow.graph.draw.diagram import Box
from dualflow.graph.draw.layout import FONT, LINE, PAD, SMALL, Picture, PlacedBox, Segment, text_width

ARROW: Final = 4.0
"""The length of arrowheads in points."""
MARGIN: Final = 12.0
_HEADING_HEIGHT: Final = 20.0

TextRole = OneOf["heading", "title", "detail", "label", "head"]
"""The role of a text: of the picture, a box, a line in a box, a wire, a panel."""

FONT_SIZES: Final[dict[TextRole, float]] = {
    "heading": FONT + 2,
    "title": FONT,
    "detail": SMALL,
    "label": SMALL,
    "head": SMALL,
}
"""The font size of each role in points."""


class Rectangle(NamedTuple):
    """A rectangle in points; y grows downwards."""

    x: float
    y: float
    width: float
    height: float


class Canvas(Protocol):
    """Draws shapes, later ones over earlier ones. Positions are in points."""

    def wires(self, segments: Sequence[Segment], x: float, y: float) -> None:
        """Draw wires, whose positions are from ``x``, ``y``."""
        ...

    def begin_box(self, box: Box, place: Rectangle) -> None:
        """Draw the rectangle of a box; shapes up to ``end_box`` belong to it."""
        ...

    def end_box(self) -> None:
        """End the box that began last."""
        ...

    def panel(self, place: Rectangle) -> None:
        """Draw the rectangle around a picture inside a box."""
        ...

    def text(self, text: str, x: float, y: float, role: TextRole) -> None:
        """Draw a text around a point, or from it on for the roles ``heading`` and ``head``."""
        ...


def page_size(picture: Picture, title: str) -> tuple[float, float]:
    """The width and height of a picture with its heading and margins, in points."""
    width = max(picture.width, text_width(f"graph {title}", FONT_SIZES["heading"])) + 2 * MARGIN
    return width, picture.height + 2 * MARGIN + _HEADING_HEIGHT


def paint_page(canvas: Canvas, picture: Picture, title: str) -> None:
    """Paint a picture with its heading."""
    canvas.text(f"graph {title}", MARGIN, MARGIN + FONT / 2, "heading")
    paint(canvas, picture, MARGIN, MARGIN + _HEADING_HEIGHT)


def paint(canvas: Canvas, picture: Picture, x: float, y: float) -> None:
    """Paint a picture with its top left corner at ``x``, ``y``."""
    canvas.wires(picture.segments, x, y)
    for placed in picture.boxes:
        _paint_box(canvas, placed, x, y)
    for label in picture.labels:
        canvas.text(label.text, x + label.x, y + label.y, "label")


def _paint_box(canvas: Canvas, placed: PlacedBox, x: float, y: float) -> None:
    left, top = x + placed.x, y + placed.y
    canvas.begin_box(placed.box, Rectangle(left, top, placed.width, placed.height))
    middle, line = left + placed.width / 2, top + PAD + FONT * LINE / 2
    canvas.text(placed.box.title, middle, line, "title")
    for detail in placed.box.details:
        line += SMALL * LINE
        canvas.text(detail, middle, line, "detail")
    for panel in placed.panels:
        place = Rectangle(x + panel.x, y + panel.y, panel.width, panel.height)
        canvas.panel(place)
        if panel.title:
            canvas.text(panel.title, place.x + PAD / 2, place.y + SMALL * 0.8, "head")
        paint(canvas, panel.picture, x + panel.left, y + panel.top)
    canvas.end_box()
