"""Devices under TensorFlow's names: the CPU, on which eager ops run, and GPUs, for compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from dualflow.core.device_names import VISIBLE_GPUS, is_cpu, is_device
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.slot import Slot
from dualflow.core.tracebacks import entry
from dualflow.core.warning import warn_user


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


GPU_COUNT: Final[Slot[Callable[[], int]]] = Slot("the number of OpenCL devices", lambda: 0)
"""The number of devices that the backend "opencl" can use."""


class _Placement:
    """The state of :func:`set_soft_device_placement`."""

    __slots__ = ("soft",)

    def __init__(self) -> None:
        self.soft = True


_placement: Final = _Placement()


def get_soft_device_placement() -> bool:
    """Whether a block on an unavailable device runs on the CPU; True by default."""
    return _placement.soft


def set_soft_device_placement(enabled: bool) -> None:
    """Set whether a block on an unavailable device runs on the CPU or raises an error.

    >>> import dualflow as df
    >>> df.config.set_soft_device_placement(True)
    >>> df.config.get_soft_device_placement()
    True
    """
    _placement.soft = bool(enabled)


@entry
def device(device_name: str | None) -> AbstractContextManager[None]:
    """``with df.device("/cpu:0"):`` runs the ops in the block on a device. The only one is the CPU.

    A block on a GPU or TPU runs on the CPU, with a warning. Compiled functions run on a GPU by their backend:
    ``df.function(backend="opencl")``.

    Raises:
        InvalidArgumentError: ``device_name`` is not the name of a device; or the device is unavailable, after
            ``df.config.set_soft_device_placement(False)``.
    """
    if device_name is None or is_cpu(device_name):
        return nullcontext()
    if not is_device(device_name):
        raise InvalidArgumentError(
            f"{device_name!r} is not the name of a device; the only one is the CPU, '/cpu:0'."
        )
    if not _placement.soft:
        raise InvalidArgumentError(
            f"{device_name!r} is not available: the devices are ['/cpu:0']. Leave df.device out, or let such "
            "blocks run on the CPU: df.config.set_soft_device_placement(True)."
        )
    warn_user(f"{device_name!r} is not available; the ops of the block run on the CPU.")
    return nullcontext()


@entry
def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of a type ("CPU", "GPU"), or all devices: one CPU, and the devices of OpenCL.

    An OpenCL device is listed as a GPU. It runs compiled functions: ``df.function(backend="opencl")``. With
    ``DUALFLOW_OPENCL=all`` devices are listed, too, that are CPUs with an OpenCL driver. Without pyopencl or
    without a driver there are none.

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


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices of a type that ``df.device`` accepts, or all devices.

    >>> import dualflow as df
    >>> [cpu.name for cpu in df.config.list_logical_devices()]
    ['/device:CPU:0']
    """
    return [LOGICAL_CPU] if device_type in (None, "CPU") else []


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

    Compiled functions with the backend ``"opencl"`` run on the first visible GPU. Call this before the first
    of them is compiled, since a process uses one GPU.

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
