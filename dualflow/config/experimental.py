"""TensorFlow's experimental settings, most without an effect here: ``df.config.experimental``.

Functions without an effect here are documented as such.
"""

from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import entry
from dualflow.eager.devices import PhysicalDevice
from dualflow.eager.devices import get_visible_devices as get_visible_devices
from dualflow.eager.devices import list_logical_devices as list_logical_devices
from dualflow.eager.devices import list_physical_devices as list_physical_devices
from dualflow.eager.devices import set_visible_devices as set_visible_devices


def enable_op_determinism() -> None:
    """Has no effect: equal inputs and seeds always give equal results, to the bit.

    >>> import dualflow as df
    >>> df.config.experimental.enable_op_determinism()
    """


@entry
def get_memory_growth(device: PhysicalDevice) -> bool:
    """Whether the memory of a GPU is allocated on demand: True.

    Raises:
        InvalidArgumentError: the device is the CPU, which has no such setting.
    """
    _require_gpu(device)
    return True


def _require_gpu(device: PhysicalDevice) -> None:
    if device.device_type != "GPU":
        raise InvalidArgumentError(
            f"Memory growth is a setting of GPUs, and {device.name} is the CPU; set it for "
            "list_physical_devices('GPU') only."
        )


@entry
def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Request that GPU memory is allocated on demand; without effect, since it always is.

    Raises:
        InvalidArgumentError: ``enable`` is False, or the device is the CPU, which has no such setting.

    >>> import dualflow as df
    >>> for gpu in df.config.list_physical_devices("GPU"):
    ...     df.config.experimental.set_memory_growth(gpu, True)
    """
    _require_gpu(device)
    if not enable:
        raise InvalidArgumentError(
            f"The memory of {device.name} can't be allocated at once: buffers are allocated when a call "
            "needs them. Leave set_memory_growth out, or pass True."
        )


def get_synchronous_execution() -> bool:
    """True: an op has run when its call returns."""
    return True


@entry
def set_synchronous_execution(enable: bool | None) -> None:
    """Accept True or None, without an effect: execution is always synchronous.

    Raises:
        FailedPreconditionError: ``enable`` is False; there is no asynchronous execution.
    """
    if enable is False:
        raise FailedPreconditionError("Ops run when they are called; leave set_synchronous_execution out.")


def tensor_float_32_execution_enabled() -> bool:
    """False: products of float32 are computed in float32."""
    return False


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Has no effect: only GPUs compute products of float32 with fewer bits.

    >>> import dualflow as df
    >>> df.config.experimental.enable_tensor_float_32_execution(True)
    >>> df.config.experimental.tensor_float_32_execution_enabled()
    False
    """


_publish(globals(), internal=("FailedPreconditionError", "InvalidArgumentError", "PhysicalDevice", "entry"))
