"""Counts of work, for claims about speed that hold on any machine."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def lines_run() -> Callable[[Callable[[], Any]], int]:
    """``lines_run(call)`` is how many lines of Python run in ``call()``."""

    def count(call: Callable[[], Any]) -> int:
        lines = 0

        def listen(frame: Any, event: str, arg: Any) -> Any:
            nonlocal lines
            lines += event == "line"
            return listen

        before = sys.gettrace()
        sys.settrace(listen)
        try:
            call()
        finally:
            sys.settrace(before)
        return lines

    return count


@pytest.fixture
def load() -> Callable[[Path, str], Any]:
    """``load(folder, source)`` is the function ``f`` of a file with that source."""

    def load(folder: Path, source: str) -> Any:
        path = folder / "program.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("program", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.f

    return load
