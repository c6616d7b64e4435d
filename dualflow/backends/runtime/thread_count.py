"""The number of threads that loops of this process may use, for all backends."""

from __future__ import annotations

import os
import sys
from typing import Final

from dualflow.backends.runtime import switches
from dualflow.core.errors import InvalidArgumentError

MAX_THREADS: Final = 64
"""The maximum number of threads of a process."""
PORTED: Final = ("x86_64", "aarch64")
"""The processors, on 64-bit Linux, that the thread pool is ported to."""
_DEFAULT_MOST: Final = 16


def unavailable_reason() -> str:
    """The reason that loops of this process run on the calling thread; the empty string if the pool works."""
    if sys.platform != "linux" or sys.maxsize <= 1 << 32 or os.uname().machine not in PORTED:
        return "the thread pool runs on 64-bit Linux on x86-64 and AArch64 only: loops run on their caller"
    return switches.off("pool")


def available() -> bool:
    """Whether kernels can use more than one thread in this process."""
    return not unavailable_reason()


def max_threads() -> int:
    """The maximum number of threads of a loop, the caller included; scratch memory is sized by it.

    It is ``DUALFLOW_NUM_THREADS`` if that is set, else the processors this process may use, at most 16.
    """
    return _most


def num_threads() -> int:
    """The number of threads that the settings allow a loop, the caller included."""
    return _count[0]


def use(count: int) -> None:
    """Set the number of threads of a loop, from 1 to :func:`max_threads`."""
    _count[0] = count


def _processors() -> int:
    """The number of processors of this process: its affinity mask, limited by its control group's quota."""
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
    setting = os.environ.get("DUALFLOW_NUM_THREADS", "")
    if not setting:
        return min(_processors(), _DEFAULT_MOST)
    if not setting.isdecimal() or not 1 <= int(setting) <= MAX_THREADS:
        raise InvalidArgumentError(f"DUALFLOW_NUM_THREADS={setting!r}: give a number from 1 to {MAX_THREADS}")
    return int(setting)


_most = _configured_threads()
_count = [_most]
