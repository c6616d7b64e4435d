"""A fixture that imports functions from files that a test writes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


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
