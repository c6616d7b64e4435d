"""Imports the package before pytest collects doctests: its importlib mode would import each file anew."""

import gc

import pytest
from hypothesis import HealthCheck, settings

import dualflow  # noqa: F401

# A machine that is busy with something else is no fault of a test; the same tree passes or fails each time.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("patient")
# Other examples at each run, to look for new faults: pytest --hypothesis-profile explore
settings.register_profile("explore", derandomize=False)
# For a suite that runs once more in another setting: pytest --hypothesis-profile brief
settings.register_profile("brief", max_examples=20)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave the collected tests out of garbage collection, which takes seconds for so many objects."""
    gc.collect()
    gc.freeze()
