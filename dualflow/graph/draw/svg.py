"""Pictures of graphs as SVG elements of a page, whose style sheet has the colours.

Boxes have the classes ``box`` and their kind, and an attribute ``data-lines`` with the numbers of the user's
lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dualflow.core.report_text import escaped
from dualflow.graph.draw.layout import FONT, LINE, PAD, SMALL, Picture, PlacedBox, Segment

_MARGIN = 8.0
_HEAD = 4.0
_SCALE = 1.5  # pixels of a screen for a point of the layout


def svg_element(picture: Picture, line_numbers: Mapping[tuple[str, int], int]) -> str:
    """The ``<svg>`` element of a picture.

    Args:
        picture: the picture.
        line_numbers: the number of each line (file, line), for the attributes ``data-lines``.
    """
    width, height = picture.width + 2 * _MARGIN, picture.height + 2 * _MARGIN
    parts = "".join(_picture(picture, _MARGIN, _MARGIN, line_numbers))
    box = f"0 0 {_number(width)} {_number(height)}"
    sizes = f'width="{_number(_SCALE * width)}" height="{_number(_SCALE * height)}"'
    return f'<svg class="graph" viewBox="{box}" {sizes}>{parts}</svg>'


def _picture(
    picture: Picture, x: float, y: float, line_numbers: Mapping[tuple[str, int], int]
) -> Iterator[str]:
    wires = "".join([_wire(segment, x, y) for segment in picture.segments])
    heads = "".join([_arrowhead(x + s.x1, y + s.y1) for s in picture.segments if s.last])
    yield f'<path class="wire" d="{wires}"/><path class="arrow" d="{heads}"/>'
    for placed in picture.boxes:
        yield from _box(placed, x, y, line_numbers)
    for label in picture.labels:
        yield _text(label.text, x + label.x, y + label.y, "label")


def _box(placed: PlacedBox, x: float, y: float, line_numbers: Mapping[tuple[str, int], int]) -> Iterator[str]:
    box, left, top = placed.box, x + placed.x, y + placed.y
    numbers = dict.fromkeys(line_numbers[o.file, o.line] for o in box.origins)
    lines = f' data-lines="{" ".join(map(str, numbers))}"' if numbers else ""
    yield f'<g class="box {box.kind}"{lines}>{_rectangle(left, top, placed.width, placed.height)}'
    middle, line = left + placed.width / 2, top + PAD + FONT * LINE / 2
    yield _text(box.title, middle, line, "title")
    for detail in box.details:
        line += SMALL * LINE
        yield _text(detail, middle, line, "detail")
    for panel in placed.panels:
        yield _rectangle(x + panel.x, y + panel.y, panel.width, panel.height, ' class="panel"')
        if panel.title:
            yield _text(panel.title, x + panel.x + PAD / 2, y + panel.y + SMALL * 0.8, "head")
        yield from _picture(panel.picture, x + panel.left, y + panel.top, line_numbers)
    yield "</g>"


def _rectangle(x: float, y: float, width: float, height: float, attribute: str = "") -> str:
    sizes = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
    return f'<rect{attribute} {sizes} rx="4"/>'


def _text(text: str, x: float, y: float, kind: str) -> str:
    return f'<text class="{kind}" x="{_number(x)}" y="{_number(y)}">{escaped(text)}</text>'


def _wire(segment: Segment, x: float, y: float) -> str:
    """The path of a segment: a line, or a curve that begins and ends vertically."""
    x0, y0, x1, y1 = x + segment.x0, y + segment.y0, x + segment.x1, y + segment.y1
    if x0 == x1:
        return f"M{_number(x0)} {_number(y0)}V{_number(y1)}"
    numbers = map(_number, (x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1))
    return f"M{_number(x0)} {_number(y0)}C{' '.join(numbers)}"


def _arrowhead(x: float, y: float) -> str:
    half = _number(_HEAD / 2)
    return f"M{_number(x)} {_number(y)}l-{half}-{_number(_HEAD)}h{_number(_HEAD)}z"


def _number(x: float) -> str:
    """The shortest text of a coordinate, with one decimal."""
    return f"{x:.1f}".removesuffix(".0")
