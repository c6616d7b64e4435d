"""Where the boxes and wires of a diagram lie: rows from top to bottom, no two boxes on each other.

Sugiyama's method: a box stands one row below the lowest of those it reads; a wire over several rows gets a
place of its own in each; places are ordered so that few wires cross, by the mean position of neighbours; and
they move sideways towards their neighbours, as near as their order and widths allow, which is an isotonic
regression (pool adjacent violators). Lengths are points, 1/72 inch; y grows downwards.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures", 1981.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from dualflow.graph.draw.diagram import Box, Diagram

FONT = 8.0
SMALL = 6.5
LINE = 1.3
"""How far lines are apart, as a share of the font's size."""

PAD = 6.0
"""The room between a box and what is inside."""

_ADVANCE = 0.602  # of a monospaced letter, as a share of the font's size
_GAP_X = 14.0
_GAP_Y = 26.0
_WIRE = 8.0
_ORDERINGS = 12
_SHIFTS = 24


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture inside of a box, at ``left`` and ``top``, and the rectangle around it and its title."""

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
    """A box and its rectangle, with its panels inside; all positions are from the picture's corner."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a wire: straight down inside of a row, a curve between two; the last has an arrowhead."""

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
    stretches: tuple[Stretch, ...]
    labels: tuple[Label, ...]


def place(diagram: Diagram) -> Picture:
    """Lay out ``diagram``, those inside of its boxes first."""
    return _Layout(diagram).picture()


def text_width(text: str, size: float) -> float:
    """How wide a monospaced text is."""
    return len(text) * size * _ADVANCE


@dataclass(slots=True, eq=False)
class _Place:
    """What takes up room in a row: a box, or a wire on its way."""

    row: int
    width: float
    height: float = 0.0
    x: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Link:
    """A wire between neighbouring rows, and where it meets both places, from their left sides."""

    above: _Place
    below: _Place
    out: float
    into: float
    arrives: bool


class _Layout:
    def __init__(self, diagram: Diagram) -> None:
        self._diagram = diagram
        self._inside = [[(title, place(d)) for title, d in box.panels] for box in diagram.boxes]
        rows = _rows(diagram)
        self._boxes = [
            _Place(row, *_size(box, inside))
            for box, inside, row in zip(diagram.boxes, self._inside, rows, strict=True)
        ]
        self._rows: list[list[_Place]] = [[] for _ in range(max(rows, default=0) + 1)]
        for box in self._boxes:
            self._rows[box.row].append(box)
        self._links = self._linked()
        self._up: dict[_Place, list[_Link]] = defaultdict(list)
        self._down: dict[_Place, list[_Link]] = defaultdict(list)
        for link in self._links:
            self._up[link.below].append(link)
            self._down[link.above].append(link)

    def picture(self) -> Picture:
        self._order()
        self._shift()
        left = min((p.x for row in self._rows for p in row), default=0.0)
        for row in self._rows:
            for p in row:
                p.x -= left
        heights = [max((p.height for p in row), default=0.0) for row in self._rows]
        tops = list(accumulate((height + _GAP_Y for height in heights[:-1]), initial=0.0))
        width = max((p.x + p.width for row in self._rows for p in row), default=0.0)
        boxes = [self._placed(i, tops) for i in range(len(self._boxes))]
        bottoms = {p: box.y + box.height for p, box in zip(self._boxes, boxes, strict=True)}
        return Picture(
            width,
            tops[-1] + heights[-1],
            tuple(boxes),
            tuple(self._stretches(tops, heights, bottoms)),
            tuple(label for placed in boxes for label in _labels(placed)),
        )

    def _linked(self) -> list[_Link]:
        """The links of all wires; wires of one value share their way down."""
        boxes = self._diagram.boxes
        targets: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for wire in self._diagram.wires:
            targets[wire.source, wire.port].append((wire.target, wire.slot))
        links: list[_Link] = []
        for (source, port), readers in targets.items():
            here, out = self._boxes[source], _port(boxes[source], port, self._boxes[source].width)
            ways = {here.row: (here, out)}
            for row in range(here.row + 1, max(self._boxes[t].row for t, _ in readers)):
                step = _Place(row, _WIRE)
                self._rows[row].append(step)
                links.append(_Link(here, step, out, _WIRE / 2, False))
                here, out = ways[row] = step, _WIRE / 2
            for target, slot in readers:
                below = self._boxes[target]
                above, start = ways[below.row - 1]
                into = below.width * (slot + 1) / (boxes[target].inputs + 1)
                links.append(_Link(above, below, start, into, True))
        return links

    def _order(self) -> None:
        """Change the order within rows, for fewer crossings."""
        best, fewest = [list(row) for row in self._rows], self._crossings()
        for turn in range(_ORDERINGS):
            if not fewest:
                break
            at = {p: float(i) for row in self._rows for i, p in enumerate(row)}
            down = turn % 2 == 0
            for row in self._rows if down else reversed(self._rows):
                means = {p: self._mean(p, at, down) for p in row}
                row.sort(key=means.__getitem__)
                at.update({p: float(i) for i, p in enumerate(row)})
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self._rows], crossings
        self._rows = best

    def _mean(self, p: _Place, at: dict[_Place, float], down: bool) -> float:
        """Where the neighbours of ``p`` stand; ports of one box count as different places."""
        if down:
            found = [at[k.above] + k.out / (k.above.width + 1) for k in self._up[p]]
        else:
            found = [at[k.below] + k.into / (k.below.width + 1) for k in self._down[p]]
        return sum(found) / len(found) if found else at[p]

    def _crossings(self) -> int:
        at = {p: i for row in self._rows for i, p in enumerate(row)}
        between: dict[int, list[tuple[tuple[float, float], tuple[float, float]]]] = defaultdict(list)
        for k in self._links:
            between[k.above.row].append(((at[k.above], k.out), (at[k.below], k.into)))
        crossings = 0
        for ends in between.values():
            seen: list[tuple[float, float]] = []
            for _, below in sorted(ends):
                crossings += len(seen) - bisect_left(seen, below)
                insort(seen, below)
        return crossings

    def _shift(self) -> None:
        """Give each place its x: first side by side, then towards its neighbours."""
        for row in self._rows:
            x = 0.0
            for p in row:
                p.x, x = x, x + p.width + _GAP_X
        for turn in range(_SHIFTS):
            both = turn >= _SHIFTS // 2
            for row in self._rows if turn % 2 == 0 else reversed(self._rows):
                wanted = [self._wanted(p, turn % 2 == 0, both) for p in row]
                weights = [1.0 + len(self._up[p]) + len(self._down[p]) for p in row]
                for p, x in zip(row, spread(wanted, [p.width + _GAP_X for p in row], weights), strict=True):
                    p.x = x

    def _wanted(self, p: _Place, down: bool, both: bool) -> float:
        """The x at which the links of ``p`` would run straight down, on average."""
        found: list[float] = []
        if down or both:
            found += [k.above.x + k.out - k.into for k in self._up[p]]
        if not down or both:
            found += [k.below.x + k.into - k.out for k in self._down[p]]
        return sum(found) / len(found) if found else p.x

    def _placed(self, index: int, tops: Sequence[float]) -> PlacedBox:
        box, p = self._diagram.boxes[index], self._boxes[index]
        y = tops[p.row]
        height = p.height - _label_room(box)
        panels = []
        x, top = p.x + PAD, y + _header(box)
        for title, picture in self._inside[index]:
            width, head = _panel_width(title, picture), _panel_head(title)
            high = head + picture.height + PAD
            panels.append(Panel(title, x, top, width, high, x + PAD, top + head, picture))
            x += width + PAD
        return PlacedBox(box, p.x, y, p.width, height, tuple(panels))

    def _stretches(
        self, tops: Sequence[float], heights: Sequence[float], bottoms: dict[_Place, float]
    ) -> list[Stretch]:
        found: dict[Stretch, None] = {}
        for link in self._links:
            row = link.above.row
            x, y = link.above.x + link.out, tops[row] + heights[row]
            found[Stretch(x, bottoms.get(link.above, tops[row]), x, y, False)] = None
            found[Stretch(x, y, link.below.x + link.into, tops[row + 1], link.arrives)] = None
        return list(found)


def spread(wanted: Sequence[float], room: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The places nearest to ``wanted``, by weighted squares, in the same order, each ``room`` from the next.

    >>> spread([0.0, 0.0, 9.0], [2.0, 2.0, 2.0], [1.0, 1.0, 1.0])
    [-1.0, 1.0, 9.0]
    """
    starts = list(accumulate(room[:-1], initial=0.0)) if room else []
    pools: list[tuple[float, float, int]] = []
    for x, start, weight in zip(wanted, starts, weights, strict=True):
        mean, total, count = x - start, weight, 1
        while pools and pools[-1][0] >= mean:
            other, more, members = pools.pop()
            mean = (mean * total + other * more) / (total + more)
            total, count = total + more, count + members
        pools.append((mean, total, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + start for mean, start in zip(means, starts, strict=True)]


def _rows(diagram: Diagram) -> list[int]:
    """The row of each box: below all that it reads; what reads nothing stands close to its readers."""
    rows = [0] * len(diagram.boxes)
    readers: dict[int, list[int]] = defaultdict(list)
    reads = {wire.target for wire in diagram.wires}
    for wire in sorted(diagram.wires, key=lambda w: w.target):
        rows[wire.target] = max(rows[wire.target], rows[wire.source] + 1)
        readers[wire.source].append(wire.target)
    for box, targets in readers.items():
        if box not in reads:
            rows[box] = min(rows[t] for t in targets) - 1
    return rows


def _size(box: Box, inside: Sequence[tuple[str, Picture]]) -> tuple[float, float]:
    """A box's width and height, with room below for the labels of its wires."""
    lines = [text_width(box.title, FONT), *(text_width(line, SMALL) for line in box.details)]
    labels = sum(_label_width(label) for label in box.labels)
    panels = sum(_panel_width(title, picture) + PAD for title, picture in inside) - PAD if inside else 0.0
    width = max([*lines, panels, _WIRE * (box.inputs + 1)]) + 2 * PAD
    height = _header(box)
    if inside:
        height += max(_panel_head(title) + picture.height for title, picture in inside) + 2 * PAD
    return max(width, labels), height + _label_room(box)


def _header(box: Box) -> float:
    """How high the title and the details are."""
    return PAD + FONT * LINE + len(box.details) * SMALL * LINE + PAD / 2


def _panel_width(title: str, picture: Picture) -> float:
    return max(picture.width, text_width(title, SMALL)) + 2 * PAD


def _panel_head(title: str) -> float:
    return SMALL * LINE + PAD / 2 if title else PAD


def _label_width(label: str) -> float:
    return text_width(label, SMALL) + PAD


def _label_room(box: Box) -> float:
    return SMALL * LINE + 2.0 if any(box.labels) else 0.0


def _port(box: Box, port: int, width: float) -> float:
    """Where a wire leaves the box: below the middle of its label's part of the box."""
    widths = [_label_width(label) for label in box.labels]
    share = width / sum(widths)
    return share * (sum(widths[:port]) + widths[port] / 2)


def _labels(placed: PlacedBox) -> list[Label]:
    y = placed.y + placed.height + _label_room(placed.box) / 2 + 1.0
    return [
        Label(text, placed.x + _port(placed.box, i, placed.width), y)
        for i, text in enumerate(placed.box.labels)
        if text
    ]
