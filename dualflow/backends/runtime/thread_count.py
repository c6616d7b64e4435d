"""How many threads the loops of this process may use, whichever backend compiles them."""

from __future__ import annotations

import os
import sys
from typing import Final

from dualflow.backends.runtime import switches
from dualflow.core.errors import InvalidArgumentError

MOST_THREADS: Final = 64
"""The most threads of a process: no setting goes beyond."""
PORTED: Final = ("x86_64", "aarch64")
"""The processors, on 64-bit Linux, that the thread pool is ported to."""
_DEFAULT_MOST: Final = 16


def unavailable_reason() -> str:
    """Why every loop of this process runs on its caller; the empty string where the pool works."""
    if sys.platform != "linux" or sys.maxsize <= 1 << 32 or os.uname().machine not in PORTED:
        return "the thread pool runs on 64-bit Linux on x86-64 and AArch64 only: loops run on their caller"
    return switches.off("pool")


def available() -> bool:
    """Whether kernels can use more than one thread in this process."""
    return not unavailable_reason()


def max_threads() -> int:
    """The most threads that a loop of this process can ever use, the caller included: scratch is sized by it.

    It is ``DUALFLOW_NUM_THREADS`` if that is set, else the processors this process may use, at most 16.
    """
    return _most


def num_threads() -> int:
    """The threads that a loop may use by the settings, the caller included."""
    return _count[0]


def use(count: int) -> None:
    """Let loops use ``count`` threads, which is from 1 to :func:`max_threads`."""
    _count[0] = count


def _processors() -> int:
    """Processors this process may use: its affinity mask, within its control group's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="utf-8") as file:
            quota, period = file.read().split()
        return max(1, min(count, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no such group, or no quota ("max")
        return count


def _configured_threads() -> int:
    if not available():
        return 1
    asked = os.environ.get("DUALFLOW_NUM_THREADS", "")
    if not asked:
        return min(_processors(), _DEFAULT_MOST)
    if not asked.isdecimal() or not 1 <= int(asked) <= MOST_THREADS:
        raise InvalidArgumentError(f"DUALFLOW_NUM_THREADS={asked!r}: give a number from 1 to {MOST_THREADS}")
    return int(asked)


_most = _configured_threads()
_count = [_most]
