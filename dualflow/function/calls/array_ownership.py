"""The arrays that a compiled graph reads, and those it may write to.

A call with Python code in it computes a variable's next value in new memory: tensors that were read before,
or are read during the call, keep their values. Machine code without host calls, which writes to variables
last, writes to a variable's own buffer instead if reference counts show that nothing else refers to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.dispatch import AbstractVariable
from dualflow.eager.device_tensor import DeviceStorage, DeviceTensor
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.updates import VariableUpdate, WriteLock, values_of

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


def call_arrays(sources: Sequence[Any]) -> list[Array]:
    """The arrays that a call reads: of tensors, and of variables, whose values are one atomic snapshot."""
    return [array_of(x) for x in _with_values(list(sources))]


def written_arrays(
    sources: Sequence[Any], written: Sequence[int], update: VariableUpdate, *, in_place: bool
) -> tuple[list[Array], bool]:
    """:func:`call_arrays` for a call that writes to variables, and whether it writes to their own buffers.

    Args:
        sources: the tensors and variables, in the order of the graph's inputs.
        written: the numbers of the inputs that the call writes to.
        update: has write locks of these, in order.
        in_place: whether the call may write to the variables' buffers if nothing else refers to them.
            Otherwise their arrays are copies.
    """
    tensors = list(sources)
    for i in written:
        tensors[i] = None
    arrays: list[Any] = [None if x is None else array_of(x) for x in _with_values(tensors)]
    del tensors
    in_place = in_place and update.begin_in_place()  # last: reads above may wait for other threads
    for i, lock in zip(written, update.locks, strict=True):
        array = array_of(lock.tensor)
        arrays[i] = array if in_place else np.array(array, order="C")
    return arrays, in_place


def device_values(
    sources: Sequence[Any], written: Sequence[int] = (), locks: Sequence[WriteLock] = ()
) -> list[Array | DeviceStorage]:
    """The input arrays of a call on a device; tensors on the device keep their storage.

    They are those of :func:`call_arrays`, but the call writes to none of them.
    """
    tensors = list(sources)
    for i, lock in zip(written, locks, strict=True):
        tensors[i] = lock.tensor
    return [device_value(x) for x in _with_values(tensors)]


def device_value(tensor: Any) -> Array | DeviceStorage:
    """The elements of a tensor on the device; the array of :func:`array_of` for a tensor on the host."""
    return tensor.storage if type(tensor) is DeviceTensor else array_of(tensor)


def _with_values(sources: list[Any]) -> list[Any]:
    """``sources``, with the tensor of each variable instead of the variable: one snapshot of all of them."""
    read = [i for i, x in enumerate(sources) if isinstance(x, AbstractVariable)]
    for i, tensor in zip(read, values_of([sources[i] for i in read]), strict=True):
        sources[i] = tensor
    return sources
