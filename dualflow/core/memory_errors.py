"""Errors for want of memory: which of NumPy's errors are ones, and what users see in their place."""

from __future__ import annotations

from typing import Final

from dualflow.core.errors import ResourceExhaustedError

_TOO_LARGE: Final = (
    "array is too big",
    "Maximum allowed dimension exceeded",
    "Maximum allowed size exceeded",
    "iterator is too large",
)
"""What NumPy says in a ValueError of sizes that no address can tell."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` says that an array has more elements than memory can hold."""
    return isinstance(error, MemoryError) or (
        isinstance(error, ValueError) and str(error).startswith(_TOO_LARGE)
    )


def out_of_memory(what: str, error: BaseException, place: str = "") -> ResourceExhaustedError:
    """The error of ``what``, an op with its inputs or a function, in the place of NumPy's.

    ``place`` is the user's line, on a line of its own.
    """
    why = f": {str(error).removesuffix('.')}" if str(error) else ""
    return ResourceExhaustedError(
        f"{what} needs more memory than there is{why}. Do it in smaller parts.{place}"
    )
