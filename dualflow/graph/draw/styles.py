"""The styles of pictures: colours on light and dark paper, and outlines that differ without colours, too.

The hues of kernels are those of Okabe and Ito, which colour-blind readers can distinguish. A kernel's title
has its number, so that a repeated hue is not ambiguous.
"""

from __future__ import annotations

from typing import Final

from dualflow.core.records import NamedTuple
from dualflow.graph.draw.diagram import Box, Kind
from dualflow.graph.draw.painter import FONT_SIZES


class Colours(NamedTuple):
    """The colours of a picture on one kind of paper: its background, texts, outlines and wires."""

    paper: str
    title: str
    text: str
    edge: str
    frame: str
    wire: str


class Style(NamedTuple):
    """The style of a box.

    Attributes:
        fill, dark_fill: its colour on light and on dark paper.
        width: the width of its outline.
        dashes: the lengths of the dashes and gaps of its outline; empty for a solid one.
        edge: the colour of its outline; "" for that of the paper's outlines.
    """

    fill: str
    dark_fill: str
    width: float = 0.8
    dashes: tuple[float, ...] = ()
    edge: str = ""


LIGHT: Final = Colours("#ffffff", "#000000", "#455a64", "#455a64", "#cfd8dc", "#78909c")
DARK: Final = Colours("#1d2127", "#eceff3", "#b6c1cc", "#8899a5", "#363d47", "#8899a5")

_DASHED: Final = (4.0, 2.0)
_DOTTED: Final = (1.0, 2.0)

STYLES: Final[dict[Kind, Style]] = {
    "input": Style("#eceff1", "#2a3037"),
    "variable": Style("#fff3cd", "#443a14", 1.8),
    "op": Style("#ffffff", "#23282f"),
    "effect": Style("#fde2e2", "#4a2525", 0.8, _DASHED),
    "kernel": Style("#e3f2e6", "#173f31", 1.4),
    "control": Style("#e4ecfb", "#22304a", 1.4),
    "group": Style("#f3e8f7", "#3a2b42", 1.4),
    "update": Style("#fff3cd", "#443a14", 1.8, _DASHED),
    "result": Style("#eceff1", "#2a3037"),
    "reference": Style("#ffffff", "#23282f", 0.8, _DOTTED),
}
"""The style of each kind of box."""

KERNEL_STYLES: Final = (
    Style("#c9ecdf", "#0d4535", 1.8, edge="#009e73"),
    Style("#ffe3ad", "#4f3903", 1.8, edge="#e69f00"),
    Style("#d3ecfb", "#123f58", 1.8, edge="#56b4e9"),
    Style("#f5dbe9", "#4b2a3d", 1.8, edge="#cc79a7"),
    Style("#fbf6b5", "#46430b", 1.8, edge="#c9bd00"),
    Style("#cfe0f3", "#0b3252", 1.8, edge="#0072b2"),
)
"""The styles of numbered kernels, which repeat after the last."""


def style_of(box: Box) -> Style:
    """The style of ``box``: that of its kernel's number, or of its kind."""
    return STYLES[box.kind] if box.kernel is None else KERNEL_STYLES[box.kernel % len(KERNEL_STYLES)]


def style_class(box: Box) -> str:
    """The class of the rectangle of ``box`` in SVG."""
    return box.kind if box.kernel is None else f"hue{box.kernel % len(KERNEL_STYLES)}"


def style_sheet() -> str:
    """The CSS of pictures, which applies to ``svg.dualflow-graph`` only.

    It has no variables, which programs other than browsers don't support.
    """
    hues = ((f"hue{i}", style) for i, style in enumerate(KERNEL_STYLES))
    styles: dict[str, Style] = dict([*STYLES.items(), *hues])
    rules = [
        'text{font-family:"DejaVu Sans Mono",ui-monospace,monospace}',
        "text{text-anchor:middle;dominant-baseline:central}",
        *(f".{role}{{font-size:{size:g}px}}" for role, size in FONT_SIZES.items()),
        ".title,.heading{font-weight:700}",
        ".heading,.head{text-anchor:start}",
        ".label{paint-order:stroke;stroke-width:2px}",
        ".wire{fill:none;stroke-width:0.8}",
        *_colour_rules(LIGHT, {name: style.fill for name, style in styles.items()}),
    ]
    for name, style in styles.items():
        dashes = f";stroke-dasharray:{' '.join(f'{n:g}' for n in style.dashes)}" if style.dashes else ""
        edge = f";stroke:{style.edge}" if style.edge else ""
        rules.append(f"rect.{name}{{stroke-width:{style.width:g}{dashes}{edge}}}")
    dark = _colour_rules(DARK, {name: style.dark_fill for name, style in styles.items()})
    return f"{_scoped(rules)}\n@media screen and (prefers-color-scheme: dark) {{\n{_scoped(dark)}\n}}"


def _colour_rules(colours: Colours, fills: dict[str, str]) -> list[str]:
    """The rules that have colours, for one kind of paper."""
    edged = ",".join(f"rect.{kind}" for kind in STYLES)  # numbered kernels have outlines of their own
    return [
        f".title,.heading{{fill:{colours.title}}}",
        f".detail,.label,.head{{fill:{colours.text}}}",
        f".label{{stroke:{colours.paper}}}",
        f".wire{{stroke:{colours.wire}}}",
        f".arrow{{fill:{colours.wire}}}",
        f"{edged}{{stroke:{colours.edge}}}",
        f"rect.panel{{fill:{colours.paper};stroke:{colours.frame}}}",
        f"rect.paper{{fill:{colours.paper}}}",
        *(f"rect.{name}{{fill:{fill}}}" for name, fill in fills.items()),
    ]


def _scoped(rules: list[str]) -> str:
    """Rules that apply inside of pictures only."""
    lines = []
    for rule in rules:
        selectors, _, body = rule.partition("{")
        scoped = ",".join(f"svg.dualflow-graph {selector}" for selector in selectors.split(","))
        lines.append(f"{scoped}{{{body}")
    return "\n".join(lines)
