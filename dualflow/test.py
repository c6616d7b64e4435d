"""Functions for tests of programs: ``df.test``."""

import unittest as _unittest
from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish
from dualflow.function.inspect.check_gradients import check_gradients as check_gradients


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: object = None) -> bool:
    """False: dualflow runs on the CPU.

    >>> import dualflow as df
    >>> df.test.is_gpu_available()
    False
    """
    return False


def gpu_device_name() -> str:
    """The name of a GPU: empty, as there is none."""
    return ""


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
