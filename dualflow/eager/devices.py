"""Devices under TensorFlow's names: the CPU, and the devices of OpenCL as GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from dualflow.core import dispatch
from dualflow.core.device_names import CPU as CPU_NAME
from dualflow.core.device_names import GPU, VISIBLE_GPUS, is_cpu, is_device, is_gpu
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.slot import Slot
from dualflow.core.tracebacks import entry
from dualflow.core.warning import warn_user
from dualflow.eager.device_engine import DeviceBlock
from dualflow.eager.placement import SOFT_PLACEMENT
from dualflow.eager.tensor import EagerTensor


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as programs refer to it."""

    name: str
    device_type: str


CPU: Final = PhysicalDevice("/physical_device:CPU:0", "CPU")
LOGICAL_CPU: Final = LogicalDevice("/device:CPU:0", "CPU")
LOGICAL_GPU: Final = LogicalDevice("/device:GPU:0", "GPU")

GPU_COUNT: Final[Slot[Callable[[], int]]] = Slot("the number of OpenCL devices", lambda: 0)
"""The number of devices that the backend "opencl" can use."""


def gpu_count() -> int:
    """The number of GPUs that ``df.device`` accepts: a process uses the first visible one."""
    return int(any(VISIBLE_GPUS.has(i) for i in range(GPU_COUNT.value())))


def get_soft_device_placement() -> bool:
    """Whether a block on an unavailable device, and an op without device code, runs on the CPU.

    It is True by default.
    """
    return SOFT_PLACEMENT.enabled


def set_soft_device_placement(enabled: bool) -> None:
    """Set whether an op that a device can't run runs on the CPU, or raises an error.

    This is for blocks of ``df.device`` on an unavailable device, and for ops without device code.

    >>> import dualflow as df
    >>> df.config.set_soft_device_placement(True)
    >>> df.config.get_soft_device_placement()
    True
    """
    SOFT_PLACEMENT.enabled = bool(enabled)


@entry
def device(device_name: str | None) -> AbstractContextManager[None]:
    """``with df.device("/GPU:0"):`` runs the ops in the block on a device.

    Tensors and variables that the block creates are in the memory of the device. Inputs that are elsewhere
    are copied to it for each op. An op without device code runs on the CPU, and its result is copied to the
    device. Blocks nest; in a block of ``df.device(None)`` the device of an op follows from its inputs again:
    it is the GPU if one of them is there. In a traced function, a block on the GPU compiles the whole
    function for it, except for the ops in blocks on the CPU.

    A block on an unavailable device runs on the CPU, with a warning.

    Args:
        device_name: the name of a device, such as "/CPU:0" or "/device:GPU:0"; None for no device.

    Raises:
        InvalidArgumentError: ``device_name`` is not the name of a device; or the device is unavailable, after
            ``df.config.set_soft_device_placement(False)``.

    >>> import dualflow as df
    >>> with df.device("/CPU:0"):
    ...     print(df.constant(1).device)
    /job:localhost/replica:0/task:0/device:CPU:0
    """
    return DeviceBlock(available_device(device_name))


def available_device(device_name: str | None) -> str | None:
    """The full name of a device, or that of the CPU if it is unavailable; None for an empty name.

    Raises as :func:`device` does.
    """
    if not device_name:
        return None
    if is_cpu(device_name):
        return CPU_NAME
    if not is_device(device_name):
        raise InvalidArgumentError(
            f"{device_name!r} is not the name of a device, such as '/cpu:0' or '/gpu:0'."
        )
    available = gpu_count()
    if available and is_gpu(device_name):
        return GPU
    if not SOFT_PLACEMENT.enabled:
        names = ["/cpu:0", "/gpu:0"][: 1 + available]
        raise InvalidArgumentError(
            f"{device_name!r} is not available: the devices are {names}. Leave df.device out, or let such "
            "blocks run on the CPU: df.config.set_soft_device_placement(True)."
        )
    warn_user(f"{device_name!r} is not available; the ops of the block run on the CPU.")
    return CPU_NAME


def copy_to_cpu(tensor: EagerTensor) -> EagerTensor:
    """The tensor on the CPU: itself if it is there; else a copy, which tapes record."""
    return tensor if type(tensor) is EagerTensor else _copied(tensor, CPU_NAME)


def copy_to_gpu(tensor: EagerTensor, number: int) -> EagerTensor:
    """The tensor on a GPU: itself if it is there; else a copy, which tapes record.

    Raises:
        FailedPreconditionError: there is no such GPU.
    """
    available = gpu_count()
    if not 0 <= number < available:
        there = (
            "a process uses one GPU, which is GPU:0; select it with df.config.set_visible_devices, and use "
            "another process for another GPU."
            if available
            else "there is no GPU. It needs an OpenCL driver and pyopencl: pip install 'dualflow[gpu]'. Else "
            "leave out the call, or check df.test.is_gpu_available() first."
        )
        raise FailedPreconditionError(f"GPU:{number} unknown device: {there}")
    return _copied(tensor, GPU) if type(tensor) is EagerTensor else tensor


def _copied(tensor: EagerTensor, device: str) -> EagerTensor:
    with DeviceBlock(device):
        copied: EagerTensor = dispatch.current().shallow_copy(tensor)
        return copied


@entry
def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of a type ("CPU", "GPU"), or all devices: one CPU, and the devices of OpenCL.

    An OpenCL device is listed as a GPU. With ``DUALFLOW_OPENCL=all`` devices are listed, too, that are CPUs
    with an OpenCL driver. Without pyopencl or without a driver there are none.

    Args:
        device_type: the type; None for all.

    Raises:
        InvalidArgumentError: ``DUALFLOW_OPENCL`` has an invalid value.

    >>> import dualflow as df
    >>> df.config.list_physical_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    devices = [CPU] if device_type in (None, "CPU") else []
    return [*devices, *_gpus()] if device_type in (None, "GPU") else devices


def _gpus() -> list[PhysicalDevice]:
    return [PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(GPU_COUNT.value())]


@entry
def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices of a type that ``df.device`` accepts, or all devices.

    Of several visible GPUs a process uses the first, which is ``"/device:GPU:0"``.

    Args:
        device_type: the type, "CPU" or "GPU"; None for all.

    Raises:
        InvalidArgumentError: ``DUALFLOW_OPENCL`` has an invalid value.

    >>> import dualflow as df
    >>> [cpu.name for cpu in df.config.list_logical_devices("CPU")]
    ['/device:CPU:0']
    """
    cpus = [LOGICAL_CPU] if device_type in (None, "CPU") else []
    return [*cpus, *[LOGICAL_GPU] * gpu_count()] if device_type in (None, "GPU") else cpus


@entry
def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of a type that a program may use: those of :func:`list_physical_devices` by default."""
    devices = list_physical_devices(device_type)
    gpus = [device for device in devices if device.device_type == "GPU"]
    hidden = {gpu for i, gpu in enumerate(gpus) if not VISIBLE_GPUS.has(i)}
    return [device for device in devices if device not in hidden]


@entry
def set_visible_devices(
    devices: PhysicalDevice | Sequence[PhysicalDevice], device_type: str | None = None
) -> None:
    """Set the devices of a type, or of any type, that a program may use. The CPU can't be hidden.

    The first visible GPU is ``"/GPU:0"`` for ``df.device``, and runs functions with the backend ``"opencl"``.
    Call this before it is used, since a process uses one GPU.

    Args:
        devices: some of :func:`list_physical_devices`, or one.
        device_type: the type that is set; None for all.

    Raises:
        InvalidArgumentError: the CPU is left out, or this machine lacks a device.

    >>> import dualflow as df
    >>> df.config.set_visible_devices([], "GPU")
    >>> df.config.get_visible_devices("GPU")
    []
    >>> df.config.set_visible_devices(df.config.list_physical_devices())
    """
    requested = [devices] if isinstance(devices, PhysicalDevice) else list(devices)
    available = list_physical_devices(device_type)
    lacks_cpu = device_type in (None, "CPU") and CPU not in requested
    if lacks_cpu or not set(requested) <= set(available):
        raise InvalidArgumentError(
            f"The visible devices can't be {requested}: choose from {available}, with the CPU."
        )
    if device_type in (None, "GPU"):
        gpus = [device for device in available if device.device_type == "GPU"]
        numbers = frozenset(i for i, gpu in enumerate(gpus) if gpu in requested)
        VISIBLE_GPUS.numbers = numbers if len(numbers) < len(gpus) else None
