"""Which fast parts ``DUALFLOW_DISABLE`` switches off, for the whole process: it is read once.

Results are the same without them, only later. A switch tells whether a part is at fault, and lets tests run
what stands behind it.
"""

from __future__ import annotations

import functools
import os
from typing import Final

from dualflow.core.errors import InvalidArgumentError

VARIABLE: Final = "DUALFLOW_DISABLE"
PARTS: Final = {
    "builtin_call": "calls go through ctypes",
    "linker": "LLVM is loaded to link",
    "pool": "loops run on their caller",
    "product": "NumPy's BLAS is called",
    "cache": "each process compiles anew",
    "blocks": "large outputs are new memory",
}
"""The parts that have a switch, and what happens where they are off."""


def off(part: str) -> str:
    """Why a part is switched off, and what happens instead; the empty string where it is on.

    Raises:
        InvalidArgumentError: the variable names something that is no part.

    >>> off("linker") in ("", "DUALFLOW_DISABLE names it: LLVM is loaded to link")
    True
    """
    return f"{VARIABLE} names it: {PARTS[part]}" if part in _named() else ""


@functools.cache
def _named() -> frozenset[str]:
    return parts(os.environ.get(VARIABLE, ""))


def parts(words: str) -> frozenset[str]:
    """The parts that a list names.

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
