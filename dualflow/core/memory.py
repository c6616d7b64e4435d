"""How much memory there is."""

from __future__ import annotations

import functools
import os
from pathlib import Path

_ASSUMED = 8 << 30


@functools.cache
def available_bytes() -> int:
    """Bytes that this process may take, as far as the system tells; asked once.

    >>> available_bytes() > 1 << 20
    True
    """
    return min([*_of_the_machine(), *_of_the_group()], default=_ASSUMED)


def _of_the_machine() -> list[int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        try:
            return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
        except (AttributeError, ValueError, OSError):
            return []


def _of_the_group() -> list[int]:
    """What the control group of a container leaves."""
    folder = Path("/sys/fs/cgroup")
    try:
        most, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return [max(int(most) - int(used), 0)] if most != "max" else []
    except (OSError, ValueError):
        return []
