"""Imports the package before pytest collects doctests: its importlib mode would import each file anew."""

import dualflow  # noqa: F401
