"""Out-of-memory errors: detection of NumPy's, and their conversion."""

from __future__ import annotations

from typing import Final

from dualflow.core.errors import ResourceExhaustedError

_TOO_LARGE: Final = (
    "array is too big",
    "Maximum allowed dimension exceeded",
    "Maximum allowed size exceeded",
    "iterator is too large",
)
"""The beginnings of NumPy's messages (ValueErrors) for sizes beyond the address space."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` is due to an array with more elements than memory can hold."""
    return isinstance(error, MemoryError) or (
        isinstance(error, ValueError) and str(error).startswith(_TOO_LARGE)
    )


def graph_out_of_memory(name: str, error: BaseException) -> ResourceExhaustedError:
    """The error of a call of the graph ``name`` for which there is not enough memory."""
    return ResourceExhaustedError(f"{name} needs more memory than there is: {error}. Compute it in parts.")


def out_of_memory(what: str, error: BaseException, place: str = "") -> ResourceExhaustedError:
    """The error that replaces NumPy's; ``what`` is an op with its inputs, or a function.

    ``place`` is the user's line, preceded by a newline.
    """
    why = f": {str(error).removesuffix('.')}" if str(error) else ""
    return ResourceExhaustedError(
        f"{what} needs more memory than there is{why}. Do it in smaller parts.{place}"
    )
