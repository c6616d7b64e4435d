"""An OpenCL driver for tests: PoCL, which runs kernels on the CPU, or that of a GPU."""

from __future__ import annotations

import os

from required_tools import DRIVERS, missing, require_module


def require_opencl() -> None:
    """Let CPUs count as devices; without pyopencl or a driver, the test skips or fails.

    Call it at the top of a file: the process opens its device once.
    """
    require_module("pyopencl")
    os.environ.setdefault("DUALFLOW_OPENCL", "all")
    from dualflow.backends.opencl.devices import devices  # it imports pyopencl

    if not devices():
        missing("an OpenCL driver", f"apt-get install {DRIVERS['opencl'][1]}")
