"""A fixture for tests that run eagerly and in an explicit graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from dualflow.compat import v1


@pytest.fixture(params=["eager", "graph"])
def eager_or_graph(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test runs eagerly, and a second time in an explicit graph, which sessions evaluate."""
    block: AbstractContextManager[Any] = (
        nullcontext() if request.param == "eager" else v1.Graph().as_default()
    )
    with block:
        yield
