"""Counts of work, for claims about speed that hold on any machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
