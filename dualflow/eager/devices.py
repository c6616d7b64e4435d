"""The one device there is, by the names TensorFlow's programs use."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry

_PLACE = r"(/job:\w+)?(/replica:\d+)?(/task:\d+)?/?(device:)?"
_CPU = re.compile(_PLACE + r"(cpu:(0|\*))?", re.IGNORECASE)
_DEVICE = re.compile(_PLACE + r"\w+:(\d+|\*)", re.IGNORECASE)


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")


@entry
def device(device_name: str | None) -> AbstractContextManager[None]:
    """``with df.device("/cpu:0"):`` ops in the block run on the device that is named. There is one, the CPU.

    Raises:
        InvalidArgumentError: ``device_name`` is no device of this machine.
    """
    if device_name is not None and not _CPU.fullmatch(device_name):
        fault = "not available" if _DEVICE.fullmatch(device_name) else "no name of a device"
        raise InvalidArgumentError(
            f"{device_name!r} is {fault}: the devices are ['/cpu:0']. "
            "dualflow runs on the CPU; leave df.device out, or ask df.config.list_physical_devices('GPU')."
        )
    return nullcontext()


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of a type ("CPU", "GPU"), or all: one CPU, whose cores its ops share.

    >>> import dualflow as df
    >>> len(df.config.list_physical_devices("CPU")), df.config.list_physical_devices("GPU")
    (1, [])
    """
    return [CPU] if device_type in (None, "CPU") else []
