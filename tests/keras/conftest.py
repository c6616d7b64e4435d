"""Keras on this backend, imported once."""

import os
import sys
from typing import Any

import pytest

import dualflow as df

os.environ["KERAS_BACKEND"] = "dualflow"  # for tests that import Keras by its own name


@pytest.fixture(scope="session")
def keras() -> Any:
    return df.keras


@pytest.fixture(scope="session")
def backend(keras: Any) -> Any:
    """What Keras's own code imports as its backend."""
    return sys.modules["keras.src.backend"]
