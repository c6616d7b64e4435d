"""Command lines and tables of the benchmarks that are modules of their own."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance | None")


def command_line(module: str, description: str | None) -> argparse.ArgumentParser:
    """The parser of ``python -m benchmarks.MODULE``, with the option ``--json``."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, help="also write the figures here")
    return parser


def contains_word(name: str, words: str) -> bool:
    """Whether ``name`` contains one of ``words``, which commas separate.

    >>> contains_word("gelu, 1M", "softmax,gelu"), contains_word("sum", "")
    (True, True)
    """
    return any(word in name for word in words.split(","))


def print_table(
    header: str, rows: Iterable[tuple[str, R]], line: Callable[[str, R], str], path: Path | None
) -> None:
    """Print a table row by row, each when it is measured, and write the figures to ``path``.

    Args:
        header: the head of a Markdown table.
        rows: the name and the figures of each row, measured when they are taken; None for no figures.
        line: writes a row of the table.
        path: the JSON file; None for none.
    """
    print(header, flush=True)
    figures: dict[str, dict[str, Any] | None] = {}
    for name, row in rows:
        figures[name] = None if row is None else dataclasses.asdict(row)
        print(line(name, row), flush=True)
    write_json(path, figures)


def write_json(path: Path | None, figures: Any) -> None:
    """Write figures to the file of the option ``--json``, if it has one."""
    if path is not None:
        path.write_text(json.dumps(figures, indent=2), encoding="utf-8")
