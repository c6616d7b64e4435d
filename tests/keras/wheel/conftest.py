"""What Keras's tests, which its wheel ships without, expect of the ``conftest`` beside them."""

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    for marker in (
        "requires_trainable_backend: a test that trains a model",
        "multi_device: a test of several devices",
    ):
        config.addinivalue_line("markers", marker)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    one_device = pytest.mark.skip(reason="there is one device")
    for item in items:
        if "multi_device" in item.keywords:
            item.add_marker(one_device)


def skip_if_backend(backend: str, reason: str) -> pytest.MarkDecorator:
    """Skip a test where Keras runs on ``backend``."""
    return pytest.mark.skipif(os.environ.get("KERAS_BACKEND") == backend, reason=reason)
