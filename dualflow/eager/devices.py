"""The CPU, the only device, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from dualflow.core.device_names import is_cpu, is_device
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
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

    A block on a GPU or TPU runs on the CPU, with a warning.

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


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of a type ("CPU", "GPU"), or all devices: one CPU.

    >>> import dualflow as df
    >>> len(df.config.list_physical_devices("CPU")), df.config.list_physical_devices("GPU")
    (1, [])
    """
    return [CPU] if device_type in (None, "CPU") else []


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices of a type that ``df.device`` accepts, or all devices.

    >>> import dualflow as df
    >>> [cpu.name for cpu in df.config.list_logical_devices()]
    ['/device:CPU:0']
    """
    return [LOGICAL_CPU] if device_type in (None, "CPU") else []


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of a type that a program may use: all of :func:`list_physical_devices`."""
    return list_physical_devices(device_type)


@entry
def set_visible_devices(
    devices: PhysicalDevice | Sequence[PhysicalDevice], device_type: str | None = None
) -> None:
    """Check that ``devices`` are all devices of a type, or of any type: no device can be hidden.

    Raises:
        InvalidArgumentError: the CPU is left out, or this machine lacks a device.

    >>> import dualflow as df
    >>> df.config.set_visible_devices([], "GPU")
    """
    requested = [devices] if isinstance(devices, PhysicalDevice) else list(devices)
    if requested != list_physical_devices(device_type):
        raise InvalidArgumentError(
            f"The visible devices can't be {requested}: they are {list_physical_devices(device_type)}."
        )
