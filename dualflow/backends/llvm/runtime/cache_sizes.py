"""The sizes of the processor's data caches, as Linux lists them."""

from __future__ import annotations

import functools
import os
from typing import Final

from dualflow.graph.capabilities import CPU_CACHES, CacheBytes

FOLDER: Final = "/sys/devices/system/cpu/cpu0/cache"
"""The folder of the caches of the first processor: each is a folder ``index0``, ``index1``, ..."""
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20}


@functools.cache
def cache_bytes(folder: str = FOLDER) -> CacheBytes:
    """The sizes of the nearest and of the last data cache; the defaults if the system doesn't list them."""
    sizes: dict[int, int] = {}
    try:
        for name in os.listdir(folder):
            if name.startswith("index"):
                level, kind, size = (_read(folder, name, file) for file in ("level", "type", "size"))
                if kind != "Instruction":
                    sizes[int(level)] = int(size[:-1]) * _UNITS[size[-1:]]
    except (OSError, ValueError, KeyError):
        return CPU_CACHES
    return CacheBytes(sizes[min(sizes)], sizes[max(sizes)]) if sizes else CPU_CACHES


def _read(*path: str) -> str:
    # UTF-8 is loaded already. An import of another codec could be interrupted by a fork.
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read().strip()
