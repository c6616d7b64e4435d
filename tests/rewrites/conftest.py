"""A fixture that restores the registry of rewrites after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dualflow as df


@pytest.fixture(autouse=True)
def _nothing_is_registered() -> Iterator[None]:
    yield
    for rewrite in df.rewrite.registered():
        df.rewrite.unregister(rewrite.name)
