"""The time at which dualflow was imported: source files that are newer are not those that run."""

from __future__ import annotations

import time
from typing import Final

IMPORTED_AT: Final = time.time_ns()
"""Nanoseconds since the epoch."""
