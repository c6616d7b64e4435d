"""How the package is built: ``df.sysconfig``."""

from dualflow.core.namespace import publish as _publish


def get_build_info() -> dict[str, bool]:
    """What TensorFlow's build says of itself: that there is no GPU.

    >>> import dualflow as df
    >>> df.sysconfig.get_build_info()["is_cuda_build"]
    False
    """
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}


_publish(globals())
