"""The arrays that a compiled graph reads, and those it may write to.

A call that the interpreter makes may meet Python code on its way, so it computes a variable's next value in
new memory: tensors that were read, or are read meanwhile, keep their value. The C call writes to a
variable's own buffer instead, where its reference counts show that nothing else refers to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.dispatch import AbstractVariable
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.updates import WriteLock, values_of

Array = np.ndarray[Any, Any]


def array_of(source: Any) -> Array:
    """The array of a tensor, or of what a variable holds, in row-major order.

    Raises:
        InaccessibleTensorError: a symbol, which has none.
    """
    if type(source) is EagerTensor:
        return _row_major(source)
    if isinstance(source, AbstractVariable):
        return _row_major(EAGER.read(source))
    return _row_major(EAGER.lift(source))  # raises, saying why


def _row_major(tensor: Any) -> Array:
    """The tensor's array; a view in another order is copied once, and the tensor keeps the copy."""
    array: Array = tensor._array
    if not array.flags.c_contiguous:
        array = tensor._array = np.ascontiguousarray(array)
    return array


def gather(
    sources: Sequence[Any], written: Sequence[int] = (), locks: Sequence[WriteLock] = ()
) -> list[Array]:
    """The arrays of ``sources``; those at ``written`` are copies of what the locks on the variables hold.

    The other variables' values are of one moment.
    """
    tensors = list(sources)
    for i, lock in zip(written, locks, strict=True):
        tensors[i] = lock.tensor
    read = [i for i, x in enumerate(tensors) if isinstance(x, AbstractVariable)]
    for i, tensor in zip(read, values_of([tensors[i] for i in read]), strict=True):
        tensors[i] = tensor
    arrays = [array_of(x) for x in tensors]
    for i in written:
        arrays[i] = np.array(arrays[i], order="C")
    return arrays
