"""The layout of a diagram: rows of boxes from top to bottom, without overlaps, and wires between them.

This file has the sizes of boxes and the paths of wires; ``layers.py`` computes rows, their order, and x. A
wire over several rows is an item of each; one over very many rows is cut, and continues from a small box with
the value's name. Lengths are in points, 1/72 inch; y grows downwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from math import ceil

from dualflow.core.records import dataclass, replace
from dualflow.graph.draw.diagram import Box, Diagram
from dualflow.graph.draw.layers import Link, RowItem, Rows, order, rows_of, set_x_positions

FONT = 8.0
SMALL = 6.5
LINE = 1.3
"""The distance of lines, as a fraction of the font's size."""

PAD = 6.0
"""The padding inside a box."""

FARTHEST = 40
"""The largest number of rows that a wire runs over: readers lose track of longer ones."""

_ADVANCE = 0.602  # of a monospaced letter, as a fraction of the font's size
_GAP_Y = 26.0
_WIRE = 8


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture inside a box, with its position, and the rectangle around it and its title."""

    title: str
    x: float
    y: float
    width: float
    height: float
    left: float
    top: float
    picture: Picture


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A box and its rectangle, with its panels. Positions are from the picture's corner."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a wire: straight inside a row, a curve between rows; the last has an arrowhead."""

    x0: float
    y0: float
    x1: float
    y1: float
    last: bool


@dataclass(frozen=True, slots=True)
class Label:
    """A text, centred at a point."""

    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Picture:
    """A diagram laid out."""

    width: float
    height: float
    boxes: tuple[PlacedBox, ...]
    segments: tuple[Segment, ...]
    labels: tuple[Label, ...]


def place(diagram: Diagram) -> Picture:
    """Lay out ``diagram``, and first the diagrams inside its boxes."""
    return _Layout(diagram).picture()


def text_width(text: str, size: float) -> float:
    """The width of a monospaced text."""
    return len(text) * size * _ADVANCE


class _Layout:
    r"""Computes one picture; positions are in points, from its top left corner.

    A row of items, boxes and passing wires, is as high as its highest item; wires bend in the gaps between
    rows::

        tops[0]   +-------+  +------+
                  |  box  |  +------+      each box begins at the top of its row
                  +-------+     |          heights[0]: a wire runs straight to the end of the row
                      |         |
                       \        |          _GAP_Y: a curve
        tops[1]     +------+    |
    """

    def __init__(self, diagram: Diagram) -> None:
        rows = rows_of(len(diagram.boxes), [(wire.source, wire.target) for wire in diagram.wires])
        self._diagram, rows = _cut(diagram, rows)
        self._inside = [[(title, place(d)) for title, d in box.panels] for box in self._diagram.boxes]
        self._boxes = [
            RowItem(row, *_size(box, inside))
            for box, inside, row in zip(self._diagram.boxes, self._inside, rows, strict=True)
        ]
        self._rows: Rows = [[] for _ in range(max(rows, default=0) + 1)]
        for box in self._boxes:
            self._rows[box.row].append(box)
        self._links = self._linked()

    def picture(self) -> Picture:
        self._rows = order(self._rows, self._links)
        set_x_positions(self._rows, self._links)
        left = min((p.x for row in self._rows for p in row), default=0)
        for row in self._rows:
            for p in row:
                p.x -= left
        heights = [max((p.height for p in row), default=0.0) for row in self._rows]
        tops = list(accumulate((height + _GAP_Y for height in heights[:-1]), initial=0.0))
        width = max((p.x + p.width for row in self._rows for p in row), default=0)
        boxes = [self._placed(i, tops) for i in range(len(self._boxes))]
        bottoms = {p: box.y + box.height for p, box in zip(self._boxes, boxes, strict=True)}
        return Picture(
            width,
            tops[-1] + heights[-1],
            tuple(boxes),
            tuple(self._segments(tops, heights, bottoms)),
            tuple(label for placed in boxes for label in _labels(placed)),
        )

    def _linked(self) -> list[Link]:
        """The segments of all wires between neighbouring rows; wires of one value share their path."""
        boxes = self._diagram.boxes
        targets: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for wire in self._diagram.wires:
            targets[wire.source, wire.port].append((wire.target, wire.input))
        links: list[Link] = []
        for (source, port), readers in targets.items():
            item, out = self._boxes[source], _outgoing_x(boxes[source], port, self._boxes[source].width)
            path = {item.row: (item, out)}
            for row in range(item.row + 1, max(self._boxes[t].row for t, _ in readers)):
                passing = RowItem(row, _WIRE, wire=True)
                self._rows[row].append(passing)
                links.append(Link(item, passing, out, _WIRE // 2, False))
                item, out = path[row] = passing, _WIRE // 2
            for target, number in readers:
                below = self._boxes[target]
                above, start = path[below.row - 1]
                links.append(Link(above, below, start, _incoming_x(boxes[target], number, below.width), True))
        return links

    def _placed(self, index: int, tops: Sequence[float]) -> PlacedBox:
        box, p = self._diagram.boxes[index], self._boxes[index]
        y = tops[p.row]
        height = p.height - _label_height(box)
        panels = []
        x, top = p.x + PAD, y + _header(box)
        for title, picture in self._inside[index]:
            width, title_height = _panel_width(title, picture), _panel_title_height(title)
            panel_height = title_height + picture.height + PAD
            panels.append(Panel(title, x, top, width, panel_height, x + PAD, top + title_height, picture))
            x += width + PAD
        return PlacedBox(box, p.x, y, p.width, height, tuple(panels))

    def _segments(
        self, tops: Sequence[float], heights: Sequence[float], bottoms: dict[RowItem, float]
    ) -> list[Segment]:
        segments: dict[Segment, None] = {}
        for link in self._links:
            row = link.above.row
            x, y = link.above.x + link.out, tops[row] + heights[row]
            segments[Segment(x, bottoms.get(link.above, tops[row]), x, y, False)] = None
            segments[Segment(x, y, link.below.x + link.into, tops[row + 1], link.arrives)] = None
        return list(segments)


def _cut(diagram: Diagram, rows: list[int]) -> tuple[Diagram, list[int]]:
    """``diagram`` with references to values over more than ``FARTHEST`` rows, and the rows of its boxes."""
    boxes, rows = list(diagram.boxes), list(rows)
    wires = []
    for wire in diagram.wires:
        if rows[wire.target] - rows[wire.source] > FARTHEST:
            name = boxes[wire.source].names[wire.port]
            rows.append(rows[wire.target] - 1)
            boxes.append(Box("reference", name, labels=("",), names=(name,)))
            wire = replace(wire, source=len(boxes) - 1, port=0)
        wires.append(wire)
    return Diagram(tuple(boxes), tuple(wires)), rows


def _size(box: Box, inside: Sequence[tuple[str, Picture]]) -> tuple[int, float]:
    """A box's width and height, which includes the labels of its wires below."""
    lines = [text_width(box.title, FONT), *(text_width(line, SMALL) for line in box.details)]
    labels = sum(_label_width(label) for label in box.labels)
    panels = sum(_panel_width(title, picture) + PAD for title, picture in inside) - PAD if inside else 0.0
    width = max([*lines, panels, _WIRE * (box.inputs + 1)]) + 2 * PAD
    height = _header(box)
    if inside:
        height += max(_panel_title_height(title) + picture.height for title, picture in inside) + 2 * PAD
    return ceil(max(width, labels)), height + _label_height(box)


def _header(box: Box) -> float:
    """The height of the title and the details."""
    return PAD + FONT * LINE + len(box.details) * SMALL * LINE + PAD / 2


def _panel_width(title: str, picture: Picture) -> float:
    return max(picture.width, text_width(title, SMALL)) + 2 * PAD


def _panel_title_height(title: str) -> float:
    return SMALL * LINE + PAD / 2 if title else PAD


def _label_width(label: str) -> float:
    return text_width(label, SMALL) + PAD


def _label_height(box: Box) -> float:
    return SMALL * LINE + 2.0 if any(box.labels) else 0.0


def _outgoing_x(box: Box, port: int, width: int) -> int:
    """The x at which a wire leaves the box: the middle of its label's part of the box."""
    widths = [_label_width(label) for label in box.labels]
    return round(width * (sum(widths[:port]) + widths[port] / 2) / sum(widths))


def _incoming_x(box: Box, number: int, width: int) -> int:
    """The x at which a wire meets the box of its consumer."""
    return round(width * (number + 1) / (box.inputs + 1))


def _labels(placed: PlacedBox) -> list[Label]:
    y = placed.y + placed.height + _label_height(placed.box) / 2 + 1.0
    return [
        Label(text, placed.x + _outgoing_x(placed.box, i, ceil(placed.width)), y)
        for i, text in enumerate(placed.box.labels)
        if text
    ]
