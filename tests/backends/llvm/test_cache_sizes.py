"""The sizes of the processor's caches, as the system reports them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualflow.backends.llvm.capabilities import capabilities
from dualflow.backends.llvm.runtime.cache_sizes import cache_bytes
from dualflow.graph.capabilities import CacheBytes


def listing(folder: Path, *caches: tuple[str, str, str]) -> str:
    """A folder as Linux has it, of caches with a level, a type and a size."""
    for number, cache in enumerate(caches):
        (folder / f"index{number}").mkdir()
        for name, text in zip(("level", "type", "size"), cache, strict=True):
            (folder / f"index{number}" / name).write_text(f"{text}\n", encoding="ascii")
    return str(folder)


def test_the_nearest_and_the_last_data_cache_are_listed(tmp_path: Path) -> None:
    folder = listing(
        tmp_path,
        ("1", "Instruction", "64K"),
        ("1", "Data", "48K"),
        ("2", "Unified", "2048K"),
        ("3", "Unified", "30M"),
    )
    assert cache_bytes(folder) == CacheBytes(48 << 10, 30 << 20)


@pytest.mark.parametrize("size", ["", "x", "32X"])
def test_without_a_listing_they_are_those_of_the_cost_model(tmp_path: Path, size: str) -> None:
    assert cache_bytes(listing(tmp_path, ("1", "Data", size))) == CacheBytes()
    assert cache_bytes(str(tmp_path / "nowhere")) == CacheBytes()


def test_the_default_backend_states_the_caches_of_this_machine() -> None:
    assert capabilities().cache_bytes == cache_bytes()
