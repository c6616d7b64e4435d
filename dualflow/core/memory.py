"""The amount of available memory."""

from __future__ import annotations

import functools
import os

_ASSUMED = 8 << 30


@functools.cache
def available_bytes() -> int:
    """The number of bytes of memory available to this process, by the system's report; cached.

    >>> available_bytes() > 1 << 20
    True
    """
    return min([*_machine_bytes(), *_group_bytes()], default=_ASSUMED)


def _machine_bytes() -> list[int]:
    try:
        lines = _text("/proc/meminfo").splitlines()
        return [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        try:
            return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
        except (AttributeError, ValueError, OSError):
            return []


def _group_bytes() -> list[int]:
    """The memory left by the limit of a container's control group."""
    try:
        limit, used = (_text(f"/sys/fs/cgroup/{name}").strip() for name in ("memory.max", "memory.current"))
        return [max(int(limit) - int(used), 0)] if limit != "max" else []
    except (OSError, ValueError):
        return []


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:  # pathlib would add 5 ms to the import of the package
        return file.read()
