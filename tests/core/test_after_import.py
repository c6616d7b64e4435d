"""``import_after``: modules that are imported right after another library."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dualflow.core.after_import import import_after


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules that can be imported; they and their finders are gone after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}.py").write_text("", encoding="utf-8")


def test_a_module_is_imported_after_the_library(folder: Path) -> None:
    write(folder, "awaited_library", "follower")
    import_after("awaited_library", "follower")
    assert "follower" not in sys.modules
    library = importlib.import_module("awaited_library")
    assert "follower" in sys.modules
    assert type(library.__loader__).__name__ == "SourceFileLoader"


def test_several_modules_follow_one_library(folder: Path) -> None:
    followers = ("first_follower", "second_follower", "third_follower")
    write(folder, "awaited_library", *followers)
    for name in followers:
        import_after("awaited_library", name)
    library = importlib.import_module("awaited_library")
    assert set(followers) <= sys.modules.keys()
    assert library.__spec__ is not None
    assert library.__spec__.loader is library.__loader__
    assert type(library.__loader__).__name__ == "SourceFileLoader"


def test_a_library_that_is_missing_stays_missing(folder: Path) -> None:
    write(folder, "follower", "other_follower")
    import_after("no_such_library", "follower")
    import_after("no_such_library", "other_follower")
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_library'"):
        importlib.import_module("no_such_library")
    assert not {"follower", "other_follower"} & sys.modules.keys()
