"""The fast paths that ``DUALFLOW_DISABLE`` switches off for the process; the variable is read once.

Results are the same without them, but slower. A switch shows whether a part causes a problem, and lets tests
run its fallback. ``DUALFLOW_CHECK_MEMORY`` switches on the checked mode of
:mod:`dualflow.backends.llvm.runtime.checked_memory`, and off the fast paths that allocate memory themselves.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Final

from dualflow.core.errors import InvalidArgumentError

VARIABLE: Final = "DUALFLOW_DISABLE"
PARTS: Final = {
    "c_fast_call": "calls go through ctypes",
    "linker": "LLVM is loaded to link",
    "pool": "loops run on their caller",
    "product": "NumPy's BLAS is called",
    "cache": "each process compiles anew",
    "programs": "each process plans programs anew, and writes their code",
    "blocks": "large outputs are new memory",
    "concurrency": "the calls of a graph run one after another",
    "collectives": "Python calls run the collectives",
}
"""The parts that have a switch, and the fallback of each."""
CHECK_MEMORY: Final = "DUALFLOW_CHECK_MEMORY"
SIDES: Final = {"": "", "0": "", "1": "end", "end": "end", "begin": "begin"}
"""Values of ``DUALFLOW_CHECK_MEMORY``: the end of buffers that touches a protected page; empty for none."""
_UNCHECKED: Final = ("c_fast_call", "blocks", "concurrency")
"""The parts that are off in the checked mode: they allocate memory, or run several steps at a time."""


def off(part: str) -> str:
    """The reason that a part is off, with the name of its fallback; the empty string if it is on.

    Raises:
        InvalidArgumentError: the variable names something that is no part.

    >>> off("linker") in ("", "DUALFLOW_DISABLE names it: LLVM is loaded to link")
    True
    """
    if part in named():
        return f"{VARIABLE} names it: {PARTS[part]}"
    if part in _UNCHECKED and checked_side():
        return f"{CHECK_MEMORY}={checked_side()}: {PARTS[part]}"
    return ""


@functools.cache
def checked_side() -> str:
    """The end of buffers that touches a protected page, "end" or "begin"; the empty string without checks.

    Raises:
        InvalidArgumentError: the variable has another value, or this is not 64-bit Linux.

    >>> checked_side() in ("", "end", "begin")
    True
    """
    side = side_of(os.environ.get(CHECK_MEMORY, ""))
    if side and (sys.platform != "linux" or sys.maxsize <= 1 << 32):
        raise InvalidArgumentError(f"{CHECK_MEMORY} works on 64-bit Linux only; unset it.")
    return side


def side_of(value: str) -> str:
    """The side that a value of ``DUALFLOW_CHECK_MEMORY`` names.

    >>> side_of("1"), side_of("begin"), side_of("0")
    ('end', 'begin', '')
    """
    if value not in SIDES:
        raise InvalidArgumentError(
            f"{CHECK_MEMORY}={value!r}: it is end (or 1), begin, or 0: which end of each buffer touches a "
            "protected page."
        )
    return SIDES[value]


@functools.cache
def named() -> frozenset[str]:
    """The parts of dualflow that ``DUALFLOW_DISABLE`` switches off."""
    return parts(os.environ.get(VARIABLE, ""))


def parts(words: str) -> frozenset[str]:
    """The parts of dualflow listed in ``words``, the comma-separated text of ``DUALFLOW_DISABLE``.

    >>> sorted(parts("pool, linker,"))
    ['linker', 'pool']
    """
    named = frozenset(word.strip() for word in words.split(",") if word.strip())
    unknown = sorted(named - PARTS.keys())
    if unknown:
        raise InvalidArgumentError(
            f"{VARIABLE}={words!r}: there is no part {unknown[0]!r} to switch off; the parts are "
            f"{', '.join(PARTS)}."
        )
    return named
