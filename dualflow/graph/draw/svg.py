"""Pictures of graphs as SVG: files with a style sheet, and elements of a page that has the style sheet.

A box is a group of the class ``box``, whose attribute ``data-lines`` has the numbers of the user's lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dualflow.core.report_text import escaped
from dualflow.graph.draw.diagram import Box
from dualflow.graph.draw.layout import Picture, Segment
from dualflow.graph.draw.painter import ARROW, Rectangle, TextRole, page_size, paint, paint_page
from dualflow.graph.draw.styles import style_class, style_sheet

_MARGIN: Final = 8.0
_SCALE: Final = 1.5  # pixels of a screen for a point of the layout


def svg_page(picture: Picture, title: str) -> str:
    """A picture with its heading as a whole ``<svg>`` element, on paper of its own."""
    canvas = _SvgCanvas({})
    width, height = page_size(picture, title)
    canvas.parts.append(f"<style>\n{style_sheet()}\n</style>")
    canvas.parts.append(f'<rect class="paper" width="{_number(width)}" height="{_number(height)}"/>')
    paint_page(canvas, picture, title)
    return _element(width, height, canvas.parts, ' xmlns="http://www.w3.org/2000/svg"')


def svg_element(picture: Picture, line_numbers: Mapping[tuple[str, int], int]) -> str:
    """The ``<svg>`` element of a picture in a page that has :func:`.styles.style_sheet`.

    Args:
        picture: the picture.
        line_numbers: the number of each line (file, line), for the attributes ``data-lines``.
    """
    canvas = _SvgCanvas(line_numbers)
    paint(canvas, picture, _MARGIN, _MARGIN)
    return _element(picture.width + 2 * _MARGIN, picture.height + 2 * _MARGIN, canvas.parts)


def _element(width: float, height: float, parts: Sequence[str], attributes: str = "") -> str:
    box = f"0 0 {_number(width)} {_number(height)}"
    sizes = f'width="{_number(_SCALE * width)}" height="{_number(_SCALE * height)}"'
    return f'<svg{attributes} class="dualflow-graph" viewBox="{box}" {sizes}>{"".join(parts)}</svg>'


class _SvgCanvas:
    """Draws shapes as the text of SVG elements, ``parts``."""

    def __init__(self, line_numbers: Mapping[tuple[str, int], int]) -> None:
        self.parts: list[str] = []
        self._line_numbers = line_numbers

    def wires(self, segments: Sequence[Segment], x: float, y: float) -> None:
        wires = "".join([_wire(segment, x, y) for segment in segments])
        heads = "".join([_arrowhead(x + s.x1, y + s.y1) for s in segments if s.last])
        self.parts += [f'<path class="wire" d="{wires}"/>', f'<path class="arrow" d="{heads}"/>']

    def begin_box(self, box: Box, place: Rectangle) -> None:
        user_lines = ((o.file, o.line) for o in box.origins)
        numbers = dict.fromkeys(self._line_numbers[p] for p in user_lines if p in self._line_numbers)
        lines = f' data-lines="{" ".join(map(str, numbers))}"' if numbers else ""
        self.parts.append(f'<g class="box {box.kind}"{lines}>{_rectangle(place, style_class(box))}')

    def end_box(self) -> None:
        self.parts.append("</g>")

    def panel(self, place: Rectangle) -> None:
        self.parts.append(_rectangle(place, "panel"))

    def text(self, text: str, x: float, y: float, role: TextRole) -> None:
        self.parts.append(f'<text class="{role}" x="{_number(x)}" y="{_number(y)}">{escaped(text)}</text>')


def _rectangle(place: Rectangle, style: str) -> str:
    x, y, width, height = map(_number, place)
    return f'<rect class="{style}" x="{x}" y="{y}" width="{width}" height="{height}" rx="4"/>'


def _wire(segment: Segment, x: float, y: float) -> str:
    """The path of a segment: a line, or a curve that begins and ends vertically."""
    x0, y0, x1, y1 = x + segment.x0, y + segment.y0, x + segment.x1, y + segment.y1
    if x0 == x1:
        return f"M{_number(x0)} {_number(y0)}V{_number(y1)}"
    numbers = map(_number, (x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1))
    return f"M{_number(x0)} {_number(y0)}C{' '.join(numbers)}"


def _arrowhead(x: float, y: float) -> str:
    half = _number(ARROW / 2)
    return f"M{_number(x)} {_number(y)}l-{half}-{_number(ARROW)}h{_number(ARROW)}z"


def _number(x: float) -> str:
    """The shortest text of a coordinate, with one decimal."""
    return f"{x:.1f}".removesuffix(".0")
