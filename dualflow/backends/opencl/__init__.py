"""Compiles graphs to OpenCL kernels, and runs them on a device with its own memory."""

from dualflow.core.errors import NotFoundError

try:
    import pyopencl as pyopencl
except ModuleNotFoundError as error:
    raise NotFoundError(
        f"The backend 'opencl' runs kernels through the package pyopencl ({error}): "
        "pip install 'dualflow[gpu]'"
    ) from error
