"""Functions for tests of programs: ``df.test``."""

import unittest as _unittest
from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish
from dualflow.eager.devices import gpu_count
from dualflow.function.inspect.check_gradients import check_gradients as check_gradients


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: object = None) -> bool:
    """Whether there is a GPU: a device of OpenCL.

    Args:
        cuda_only: whether the GPU must be used through CUDA, which dualflow doesn't use.
        min_cuda_compute_capability: ignored.

    >>> import dualflow as df
    >>> df.test.is_gpu_available() == bool(df.config.list_logical_devices("GPU"))
    True
    """
    return not cuda_only and bool(gpu_count())


def gpu_device_name() -> str:
    """The name of the GPU, ``"/device:GPU:0"``; empty if there is none."""
    return "/device:GPU:0" if gpu_count() else ""


def is_built_with_cuda() -> bool:
    """False: dualflow runs on the CPU."""
    return False


def is_built_with_gpu_support() -> bool:
    """False: dualflow runs on the CPU."""
    return False


def is_built_with_rocm() -> bool:
    """False: dualflow runs on the CPU."""
    return False


def is_built_with_xla() -> bool:
    """False: functions are compiled by LLVM."""
    return False


def main(argv: list[str] | None = None) -> None:
    """Run the tests of the program that calls it, and exit.

    Args:
        argv: the program's name and arguments; None for those of the command line.
    """
    _unittest.main(argv=argv)


if TYPE_CHECKING:
    from dualflow.testing.test_case import TestCase as TestCase

_publish(globals(), lazy={"dualflow.testing.test_case": "TestCase"})
