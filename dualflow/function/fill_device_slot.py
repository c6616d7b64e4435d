"""Fills the slots for the number of OpenCL devices and for copies to one; a call loads the drivers."""

from __future__ import annotations

from importlib.util import find_spec

from dualflow.core.convert import Array
from dualflow.core.locks import imported
from dualflow.eager.device_tensor import UPLOAD, DeviceStorage
from dualflow.eager.devices import GPU_COUNT


@GPU_COUNT.fill
def opencl_device_count() -> int:
    """The number of devices that the backend "opencl" can use; 0 without pyopencl or a driver."""
    if find_spec("pyopencl") is None:
        return 0
    return len(imported("dualflow.backends.opencl.devices").devices())


@UPLOAD.fill
def upload(array: Array) -> DeviceStorage:
    """A copy of an array on the device of this process."""
    storage: DeviceStorage = imported("dualflow.backends.opencl.device_array").upload(array)
    return storage
