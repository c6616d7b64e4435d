"""Fixtures: the complete op registry, and both modes, eager and compiled."""

from collections.abc import Callable
from typing import Any

import pytest

import dualflow as df
from dualflow.ops.families import load_families

load_families()


@pytest.fixture(params=["eager", "compiled"])
def mode(request: pytest.FixtureRequest) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``mode(f)`` runs ``f`` op by op, and in a second test compiled."""
    return df.function if request.param == "compiled" else lambda f: f
