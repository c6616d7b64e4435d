"""The arrays that a compiled graph reads, and those it may write to.

A graph updates a variable in the variable's own buffer, which must not be seen by anybody else: a tensor read
earlier, a NumPy view, a tape. Reference counts tell; in doubt the variable gets a copy first.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any, Final

import numpy as np

from dualflow.core.dispatch import AbstractVariable
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor, wrap

Array = np.ndarray[Any, Any]


def array_of(source: Any) -> Array:
    """The array of a tensor, or of what a variable holds, in row-major order.

    Raises:
        InaccessibleTensorError: a symbol, which has none.
    """
    if type(source) is EagerTensor:
        return _row_major(source)
    if isinstance(source, AbstractVariable):
        return _row_major(source._tensor)  # type: ignore[attr-defined]  # every variable holds a tensor
    return _row_major(EAGER.adopt(source))  # raises, saying why


def _row_major(tensor: Any) -> Array:
    """The tensor's array; a view in another order is copied once, and the tensor keeps the copy."""
    array: Array = tensor._array
    if not array.flags.c_contiguous:
        array = tensor._array = np.ascontiguousarray(array)
    return array


def own_buffer(variable: Any) -> Array:
    """The variable's array to write to; a copy is put in its place if anybody else may see it."""
    if _counts(variable) == _ALONE:
        array: Array = variable._tensor._array
        if array.base is None and array.flags.carray:
            return array
    fresh = np.array(variable._tensor._array, order="C")
    variable._tensor = wrap(fresh)
    return fresh


def gather(sources: Sequence[Any], written: Sequence[int]) -> list[Array]:
    """The arrays of ``sources``; those at ``written`` belong to variables and may be written to."""
    arrays: list[Any] = (
        [None if i in written else array_of(x) for i, x in enumerate(sources)]
        if written
        else [array_of(x) for x in sources]
    )
    for i in written:
        arrays[i] = own_buffer(sources[i])
    return arrays


def _counts(variable: Any) -> tuple[int, int]:
    tensor = variable._tensor
    return getrefcount(tensor), getrefcount(tensor._array)


class _Holder:
    """Stands for a variable whose tensor nobody else holds, to learn what this Python counts then."""

    def __init__(self) -> None:
        self._tensor = wrap(np.zeros(1))


_ALONE: Final = _counts(_Holder())
