"""Comparisons as one HTML page: the data as JSON; the folder ``page`` has the template, style and script."""

from __future__ import annotations

import json
import linecache
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from dualflow.core.own_files import own_text
from dualflow.core.records import NamedTuple
from dualflow.core.report_text import escaped
from dualflow.function.calls.lazy_backends import machine
from dualflow.function.inspect.compare_table import table
from dualflow.function.inspect.crossing import SizeTimes, pays_from
from dualflow.function.inspect.machine_limits import machine_limits
from dualflow.function.inspect.measurements import Measurements
from dualflow.function.inspect.pass_graphs import PassGraph
from dualflow.function.inspect.timeline import TimelineStep
from dualflow.graph.draw.diagram import Box, Diagram, diagram
from dualflow.graph.draw.layout import place
from dualflow.graph.draw.styles import style_sheet
from dualflow.graph.draw.svg import svg_element
from dualflow.graph.ir import Origin
from dualflow.graph.origin import file_label, line_label

_FOLDER: Final = ("function", "inspect", "page")
MAX_STEPS: Final = 3000
"""The number of steps that the page shows, over all timelines; it reports how many it leaves out."""
MAX_PICTURE_BYTES: Final = 450_000
"""The largest total size of the pictures of graphs."""
MAX_LISTING: Final = 150_000
"""The largest number of characters of the source of kernels."""
MAX_POINTS: Final = 4000
"""The largest number of points of the charts of memory."""
_AROUND: Final = 2
"""The lines that are shown before and after a user's lines."""
_FIGURES: Final = (
    "name",
    "arguments",
    "eager_seconds",
    "graph_seconds",
    "eager_peak_bytes",
    "graph_peak_bytes",
    "kernels",
    "blas_calls",
    "host_calls",
    "costs",
    "speedup",
    "break_even",
    "break_even_warm",
    "agrees",
)
"""The figures of a comparison that the page shows, by their names in :meth:`.Measurements.as_dict`."""


class _Share(NamedTuple):
    """Limits on what one comparison adds to the page.

    Attributes:
        steps: the most steps of a timeline.
        points: the most points of a chart of memory.
        listing: the most characters of the source of kernels on one device.
        picture_bytes: the most bytes of the pictures.
    """

    steps: int
    points: int
    listing: int
    picture_bytes: int


def page(comparisons: Sequence[Measurements]) -> str:
    """The page of several comparisons, which share its size."""
    limits, machine_report = machine_limits(), machine()
    data = {
        "device": {
            "name": machine_report["processor"]["name"],
            "threads": machine_report["threads"]["most"],
            "bandwidth": limits.bandwidth,
            "peak": limits.peak,
        },
        "comparisons": list(_described(comparisons)),
        "sizes": [_sizes(comparisons, indices) for indices in _of_several_sizes(comparisons)],
    }
    pieces = {
        "TITLE": escaped(", ".join(dict.fromkeys(c.name for c in comparisons))),
        "STYLE": f"{style_sheet()}\n{own_text(*_FOLDER, 'page.css')}",
        "DATA": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "SCRIPT": own_text(*_FOLDER, "page.mjs"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda name: pieces[name[1]], own_text(*_FOLDER, "page.html"))


def _described(comparisons: Sequence[Measurements]) -> Iterator[dict[str, Any]]:
    """Each comparison as data. Those that need fewer bytes for pictures leave more to the next ones."""
    device_count = sum(len(c.devices) for c in comparisons)
    timeline_count, remaining_bytes = 2 * len(comparisons) + device_count, MAX_PICTURE_BYTES
    share = _Share(
        steps=MAX_STEPS // timeline_count,
        points=MAX_POINTS // (2 * len(comparisons)),
        listing=MAX_LISTING // (len(comparisons) + device_count),
        picture_bytes=0,
    )
    for number, c in enumerate(comparisons):
        left = len(comparisons) - number
        described = _comparison(c, share._replace(picture_bytes=remaining_bytes // left))
        remaining_bytes -= sum(len(stage["picture"]) for stage in described["passes"])
        yield described


def _comparison(c: Measurements, share: _Share) -> dict[str, Any]:
    figures = c.as_dict()
    diagrams = [(stage, diagram(stage.graph, stage.kernels)) for stage in c.pass_graphs]
    steps = c.timelines.eager, c.timelines.graph, *(device.timeline for device in c.devices)
    origins = [o for timeline in steps for step in timeline for o in step.origins]
    origins += [o for _, d in diagrams for o in _origins(d)]
    labels = {(o.file, o.line): line_label(o) for o in origins}
    lines = sorted(labels)
    numbers = {line: i for i, line in enumerate(lines)}
    return {
        **{name: figures[name] for name in _FIGURES},
        "reason": c.difference.reason,
        "table": table(c),
        "lines": [labels[line] for line in lines],
        "eager": [_step(step, numbers) for step in steps[0][: share.steps]],
        "graph": [_step(step, numbers) for step in steps[1][: share.steps]],
        "omitted": [max(0, len(timeline) - share.steps) for timeline in steps],
        "devices": [
            {
                **figures_of_device,
                "steps": [_step(step, numbers) for step in device.timeline[: share.steps]],
                "listing": _shortened(device.listing, share.listing),
            }
            for figures_of_device, device in zip(figures["devices"], c.devices, strict=True)
        ],
        "memory": [
            _fewer_points(memory, share.points)
            for memory in (c.timelines.eager_memory, c.timelines.graph_memory)
        ],
        "passes": list(_pictures(diagrams, numbers, share.picture_bytes)),
        "sources": _sources(lines, numbers),
        "listing": _shortened(_from_first_kernel(c.listing), share.listing),
    }


def _of_several_sizes(comparisons: Sequence[Measurements]) -> Iterator[list[int]]:
    """The indices of the comparisons of each function that was measured at several sizes, the smallest first.

    Arguments without elements are none of the sizes, whose axis is logarithmic.
    """
    by_function: dict[tuple[str, Origin | None], list[int]] = defaultdict(list)
    for i, c in enumerate(comparisons):
        if c.argument_bytes:
            by_function[c.name, c.definition].append(i)
    for indices in by_function.values():
        if len({comparisons[i].argument_bytes for i in indices}) > 1:
            yield sorted(indices, key=lambda i: comparisons[i].argument_bytes)


def _sizes(comparisons: Sequence[Measurements], indices: Sequence[int]) -> dict[str, Any]:
    """The times of a function at several sizes, and the sizes from which the graph and each device pay."""
    group = [comparisons[i] for i in indices]
    ways = {"eager": [c.eager_seconds for c in group], "compiled": [c.graph_seconds for c in group]}
    for name in dict.fromkeys(device.device for device in group[0].devices):
        seconds = [next((d.seconds for d in c.devices if d.device == name), None) for c in group]
        if None not in seconds:
            ways[name] = [s for s in seconds if s is not None]
    sizes = [c.argument_bytes for c in group]
    faster_than = {way: "eager" if way == "compiled" else "compiled" for way in ways if way != "eager"}
    pays = {
        way: pays_from(list(map(SizeTimes, sizes, ways[other], ways[way])))
        for way, other in faster_than.items()
    }
    return {"comparisons": indices, "bytes": sizes, "seconds": ways, "pays": pays}


def _step(step: TimelineStep, numbers: dict[tuple[str, int], int]) -> list[Any]:
    """A step as a list, which is shorter than an object: times are in nanoseconds."""
    lines = list(dict.fromkeys(numbers[o.file, o.line] for o in step.origins))
    begin, duration, slowest = (round(1e9 * t) for t in (step.begin, step.seconds, step.slowest))
    described = [step.kind, step.name, begin, duration, lines, step.operations, step.nbytes, step.kernel]
    return [*described, step.depth, step.runs, slowest, step.iterations]


def _origins(drawn: Diagram) -> Iterator[Origin]:
    """The lines of all boxes, also of those inside boxes."""
    pending: list[Box] = list(drawn.boxes)
    while pending:
        box = pending.pop()
        yield from box.origins
        pending += [inner for _, panel in box.panels for inner in panel.boxes]


def _pictures(
    diagrams: Sequence[tuple[PassGraph, Diagram]], numbers: dict[tuple[str, int], int], remaining_bytes: int
) -> Iterator[dict[str, Any]]:
    """The pictures of the graphs after the passes, as long as they fit; the first and the last come first."""
    pictures: dict[int, str] = {}
    order = [0, len(diagrams) - 1, *range(1, len(diagrams) - 1)]
    for index in dict.fromkeys(order):
        element = svg_element(place(diagrams[index][1]), numbers)
        if len(element) <= remaining_bytes:
            pictures[index] = element
            remaining_bytes -= len(element)
    for index, (stage, _) in enumerate(diagrams):
        yield {
            "name": stage.name,
            "reason": stage.reason,
            "nodes": len(stage.graph.nodes),
            "picture": pictures.get(index, ""),
        }


def _sources(lines: Iterable[tuple[str, int]], numbers: dict[tuple[str, int], int]) -> list[dict[str, Any]]:
    """The source around the user's lines, one block for lines that are near each other."""
    lines_by_file: dict[str, list[int]] = defaultdict(list)
    for file, line in lines:
        lines_by_file[file].append(line)
    blocks = []
    for file, file_lines in lines_by_file.items():
        text = linecache.getlines(file)
        shown = sorted({n for line in file_lines for n in range(line - _AROUND, line + _AROUND + 1)})
        rows = [
            [n, text[n - 1].rstrip("\n"), numbers.get((file, n), -1)] for n in shown if 0 < n <= len(text)
        ]
        if rows:
            blocks.append({"file": file_label(file), "rows": rows})
    return blocks


def _fewer_points(memory: Sequence[int], most: int) -> list[int]:
    """The bytes over time in at most ``most`` points: the largest of the steps that each stands for."""
    width = -(-len(memory) // max(1, most)) or 1
    return [max(memory[i : i + width]) for i in range(0, len(memory), width)]


def _from_first_kernel(text: str) -> str:
    """The program from its first kernel on; empty if it has none."""
    kernel = re.search(r"^(#.*\n)*(@.*\n)*def k\d+\(", text, re.MULTILINE)
    return "" if kernel is None else text[kernel.start() :]


def _shortened(listing: str, most: int) -> str:
    omitted = len(listing) - most
    return listing if omitted <= 0 else f"{listing[:most]}\n... and {omitted:,} more characters"
