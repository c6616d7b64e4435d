"""An OpenCL driver for tests: PoCL, which runs kernels on the CPU, or that of a GPU."""

from __future__ import annotations

import os

import pytest
from required_tools import DRIVERS, missing, require_module

from dualflow.function.options import DEVICE_CODE


def count_cpus(patch: pytest.MonkeyPatch) -> None:
    """Let CPUs count as devices, unless the environment selects others.

    PoCL then compiles without optimisation, which takes half the time, and which no test is about.
    """
    if not os.environ.get("DUALFLOW_OPENCL"):
        patch.setenv("DUALFLOW_OPENCL", "all")
        patch.setenv("PYOPENCL_BUILD_OPTIONS", "-cl-opt-disable")


def use_backend(name: str, patch: pytest.MonkeyPatch) -> None:
    """Prepare a test for a backend, if it is the one that needs a driver."""
    if name == DEVICE_CODE:
        require_opencl()
        count_cpus(patch)


def require_opencl() -> None:
    """Skip or fail the tests of a file without pyopencl or a driver, of which CPUs count as devices."""
    require_module("pyopencl")
    from dualflow.backends.opencl.devices import devices  # it imports pyopencl

    with pytest.MonkeyPatch.context() as patch:
        count_cpus(patch)
        available = devices()
    if not available:
        missing("an OpenCL driver", f"apt-get install {DRIVERS['opencl'][1]}")
