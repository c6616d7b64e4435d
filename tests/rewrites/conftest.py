"""Each test leaves the registry of rewrites as it has found it: empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dualflow as df


@pytest.fixture(autouse=True)
def _nothing_is_registered() -> Iterator[None]:
    yield
    for rewrite in df.rewrite.registered():
        df.rewrite.unregister(rewrite.name)
