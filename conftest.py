"""Imports the package before pytest collects doctests: its importlib mode would import each file anew."""

from hypothesis import settings

import dualflow  # noqa: F401

settings.register_profile("brief", max_examples=20)
"""For a suite that is run once more in another setting: ``pytest --hypothesis-profile brief``."""
