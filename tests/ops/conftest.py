"""The registry, complete: all modules of the ops room; and both modes, eager and compiled."""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest

import dualflow as df
import dualflow.ops

for _module in pkgutil.iter_modules(dualflow.ops.__path__):
    importlib.import_module(f"dualflow.ops.{_module.name}")


@pytest.fixture(params=["eager", "compiled"])
def mode(request: pytest.FixtureRequest) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``mode(f)`` runs ``f`` op by op, and in a second test compiled."""
    return df.function if request.param == "compiled" else lambda f: f
