"""``df.sysconfig``: how the package was built."""

from dualflow.core.namespace import publish as _publish


def get_build_info() -> dict[str, bool]:
    """The flags of TensorFlow's build info; all are False, as no GPU is supported.

    >>> import dualflow as df
    >>> df.sysconfig.get_build_info()["is_cuda_build"]
    False
    """
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}


_publish(globals())
