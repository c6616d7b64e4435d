"""For tests: ``df.test``."""

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


_publish(globals())
