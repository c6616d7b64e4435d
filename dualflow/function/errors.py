"""Errors and warnings of traced functions; see also :mod:`dualflow.core.errors`."""

from __future__ import annotations

from dualflow.core.errors import (
    DualflowError,
    FailedPreconditionError,
    OperatorNotAllowedInGraphError,
)
from dualflow.graph.origin import caller


class SymbolicValueError(OperatorNotAllowedInGraphError, NotImplementedError):
    """Code needs the NumPy value of a symbolic tensor, which exists only when the function runs."""


class RecursiveTraceError(DualflowError, RecursionError):
    """A function called itself, with arguments of the same types, while it was traced."""


class NotNativeError(FailedPreconditionError):
    """A part of a strict function would run through NumPy or in Python."""


class CapturedValueWarning(UserWarning):
    """A Python value that a function reads from outside has changed between two of its traces."""


class FrozenDrawWarning(UserWarning):
    """A function drew random numbers from Python or NumPy during tracing; its trace repeats them."""


class RetracingWarning(UserWarning):
    """A function is traced so often that tracing takes longer than compiled code saves."""


def here() -> str:
    """The user's line as text, to append to an error's message; empty if there is none."""
    location = caller()
    return "" if location is None else f"\n  {location}"
