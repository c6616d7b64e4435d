"""``DeviceArray``: a row-major array in the memory of a device, which nothing writes to."""

from __future__ import annotations

import math
import os
import weakref
from typing import Any

import numpy as np
import pyopencl as cl

from dualflow.backends.opencl.devices import OpenCLDevice, current_device

Array = np.ndarray[Any, Any]


class DeviceArray:
    """An array in a buffer of a device; the buffer is released when the array is collected.

    Attributes:
        device: the device.
        buffer: the buffer, whose first bytes are the elements.
        shape: the shape.
        dtype: the dtype.
    """

    __slots__ = ("__weakref__", "buffer", "device", "dtype", "shape")

    def __init__(
        self, device: OpenCLDevice, buffer: cl.Buffer, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.device, self.buffer, self.shape, self.dtype = device, buffer, shape, dtype
        weakref.finalize(self, _release, device, buffer).atexit = False

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def to_host(self) -> Array:
        """A copy on the host, after the commands that compute the elements.

        Raises:
            FailedPreconditionError: the device has failed, or this process is forked from one that used it.
        """
        self.device.require_own_process()
        array = np.empty(self.shape, self.dtype)
        try:
            self.device.read(self.buffer, array)
        except cl.Error as error:
            raise self.device.failure("a transfer to the host", error) from error
        return array


def upload(array: Array, purpose: str = "") -> DeviceArray:
    """A copy of an array on the device of this process, for ``purpose``, which an error names.

    Raises:
        NotFoundError: there is no device.
        ResourceExhaustedError: the device has no memory.
        FailedPreconditionError: the device has failed, or this process is forked from one that used it.
    """
    device = current_device()
    source = np.ascontiguousarray(array)
    purpose = purpose or f"a tensor of shape {list(array.shape)} and dtype {array.dtype.name}"
    uploaded = DeviceArray(device, device.memory.allocate(source.nbytes, purpose), array.shape, array.dtype)
    try:
        event = device.write(uploaded.buffer, source)
        if event is not None:
            event.wait()
    except cl.Error as error:
        raise device.failure("a transfer to the device", error) from error
    return uploaded


def _release(device: OpenCLDevice, buffer: cl.Buffer) -> None:
    """Release the buffer of an array that is collected; a forked child leaves it alone."""
    if device.process == os.getpid():
        device.memory.release(buffer)
