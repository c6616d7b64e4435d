"""Replaces NumPy's misleading error about a symbolic tensor that is written into an array."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dualflow.core.errors import OperatorNotAllowedInGraphError
from dualflow.function.errors import SymbolicValueError

REMEDY: Final = (
    "Collect the tensors in a list and df.stack it, or in a df.TensorArray; or change elements of a tensor "
    "with df.tensor_scatter_nd_update"
)


@contextmanager
def named_numpy_writes() -> Iterator[None]:
    """Replace NumPy's error about a symbolic tensor that is assigned to an element of an array.

    Raises:
        SymbolicValueError: there was such an assignment; it has the user's line.
    """
    try:
        yield
    except ValueError as error:
        cause = error.__cause__
        if not isinstance(cause, OperatorNotAllowedInGraphError):
            raise
        _, _, line = str(cause).partition("\n")
        explained = SymbolicValueError(
            f"A symbolic df.Tensor can't be written into a NumPy array: it has no value yet. {REMEDY}."
            + (f"\n{line}" if line else "")
        )
        for note in getattr(error, "__notes__", ()):
            explained.add_note(note)
        raise explained.with_traceback(error.__traceback__) from None
