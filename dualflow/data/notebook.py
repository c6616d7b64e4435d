"""A dataset in a notebook: the specs of its elements, and the first elements if reading has no side effects.

Showing a value may not run users' code, advance an iterator, draw random numbers or fill a cache. So elements
are shown only of arrays in memory and ranges, and of stages that select, batch, zip or concatenate them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.report_text import escaped
from dualflow.core.tree import Structure
from dualflow.data.batching import BatchStage
from dualflow.data.combining import ConcatenateStage, ZipStage
from dualflow.data.options import OptionsStage
from dualflow.data.order import RepeatStage, ShardStage, SkipStage, TakeStage
from dualflow.data.rows import ArrayRows, ProgressionRows
from dualflow.data.sources import RowsStage
from dualflow.data.stage import Stage

SHOWN: Final = 5
"""The number of elements that are shown."""
_PURE: Final = (
    BatchStage,
    ConcatenateStage,
    OptionsStage,
    RepeatStage,
    ShardStage,
    SkipStage,
    TakeStage,
    ZipStage,
)
_WIDTH: Final = 60


def dataset_html(shown: str, stage: Stage) -> str:
    """A dataset as HTML: its ``repr``, and a table of its first elements, a column for each leaf."""
    head = f"<code>{escaped(shown)}</code>"
    reason = _reason_to_hide(stage)
    if reason:
        return f"{head}<p>Elements are not shown: {escaped(reason)}.</p>"
    names, specs = _leaf_names(stage.layout.structure), stage.layout.specs
    titles = (f"{name} {spec}".strip() for name, spec in zip(names, specs, strict=True))
    cells = [f"<tr>{''.join(_cells('th', titles))}</tr>"]
    cells += [f"<tr>{''.join(_cells('td', map(_text, row)))}</tr>" for row in _first_elements(stage)]
    return f"{head}<table>{''.join(cells)}</table>"


def _reason_to_hide(stage: Stage) -> str:
    """The reason why elements can't be read without effects; the empty string if they can."""
    if type(stage) is RowsStage:
        in_memory = isinstance(stage.rows, ArrayRows | ProgressionRows)
        return "" if in_memory else "reading them runs code of yours"
    if type(stage) not in _PURE:
        name = type(stage).__name__.removesuffix("Stage")
        return f"{name} would have to run; a loop over take({SHOWN}) reads them"
    return next(filter(None, map(_reason_to_hide, stage.sources)), "")


def _first_elements(stage: Stage) -> Iterator[Sequence[Any]]:
    """The first elements, of an iterator of its own."""
    elements = stage.start()
    try:
        for _ in range(SHOWN):
            yield from elements.next(1)
    finally:
        elements.close()


def _leaf_names(structure: Structure, path: str = "") -> Iterator[str]:
    """The keys and indices that lead to each leaf, joined by dots; empty for the only leaf."""
    if structure.kind is None:
        yield path
    names = structure.keys or range(len(structure.children))
    for name, child in zip(names, structure.children, strict=True):
        yield from _leaf_names(child, f"{path}.{name}" if path else str(name))


def _cells(tag: str, texts: Iterator[str]) -> Iterator[str]:
    return (f"<{tag}>{escaped(text)}</{tag}>" for text in texts)


def _text(leaf: Any) -> str:
    """A leaf in a line of at most 60 characters."""
    line = " ".join(np.array2string(np.asarray(leaf), threshold=8).split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 4]} ..."
