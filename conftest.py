"""Imports the package before pytest collects doctests: its importlib mode would import each file anew."""

from hypothesis import HealthCheck, settings

import dualflow  # noqa: F401

# A machine that is busy with something else is no fault of a test.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# For a suite that runs once more in another setting: pytest --hypothesis-profile brief
settings.register_profile("brief", max_examples=20)
