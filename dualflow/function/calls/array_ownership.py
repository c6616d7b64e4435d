"""The arrays that a compiled graph reads, and those it may write to.

Python code may run during a call that the interpreter makes. So such a call computes a variable's next value
in new memory: tensors that were read before, or are read during the call, keep their values. The C fast call
writes to a variable's own buffer instead, if reference counts show that nothing else refers to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.dispatch import AbstractVariable
from dualflow.eager.device_tensor import DeviceStorage, DeviceTensor
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.updates import WriteLock, values_of

Array = np.ndarray[Any, Any]


def array_of(source: Any) -> Array:
    """The array of a tensor, or of a variable's value, in row-major order.

    Raises:
        InaccessibleTensorError: a symbolic tensor, which has no array.
    """
    if isinstance(source, EagerTensor):
        return _row_major(source)
    if isinstance(source, AbstractVariable):
        return _row_major(EAGER.read(source))
    return _row_major(EAGER.lift(source))  # raises for a symbolic tensor


def _row_major(tensor: Any) -> Array:
    """The tensor's array; a view in another order is copied once, and the tensor stores the copy."""
    array: Array = tensor._array
    if not array.flags.c_contiguous:
        array = tensor._array = np.ascontiguousarray(array)
    return array


def call_arrays(
    sources: Sequence[Any], written: Sequence[int] = (), locks: Sequence[WriteLock] = ()
) -> list[Array]:
    """The arrays of tensors and variables for one call of a compiled graph.

    Args:
        sources: the tensors and variables, in the order of the graph's inputs.
        written: the numbers of the inputs that the call writes to: their arrays are copies.
        locks: the write lock of each of these, which has the variable's value.

    The values of the other variables are read as one atomic snapshot.
    """
    arrays = [array_of(x) for x in _snapshot(sources, written, locks)]
    for i in written:
        arrays[i] = np.array(arrays[i], order="C")
    return arrays


def device_values(
    sources: Sequence[Any], written: Sequence[int] = (), locks: Sequence[WriteLock] = ()
) -> list[Array | DeviceStorage]:
    """The input arrays of a call on a device; tensors on the device keep their storage.

    They are those of :func:`call_arrays`, but the call writes to none of them.
    """
    return [device_value(x) for x in _snapshot(sources, written, locks)]


def device_value(tensor: Any) -> Array | DeviceStorage:
    """The elements of a tensor on the device; the array of :func:`array_of` for a tensor on the host."""
    return tensor.storage if type(tensor) is DeviceTensor else array_of(tensor)


def _snapshot(sources: Sequence[Any], written: Sequence[int], locks: Sequence[WriteLock]) -> list[Any]:
    """The tensors that a call reads: for locked variables the locks' tensors, for others one snapshot."""
    tensors = list(sources)
    for i, lock in zip(written, locks, strict=True):
        tensors[i] = lock.tensor
    read = [i for i, x in enumerate(tensors) if isinstance(x, AbstractVariable)]
    for i, tensor in zip(read, values_of([tensors[i] for i in read]), strict=True):
        tensors[i] = tensor
    return tensors
