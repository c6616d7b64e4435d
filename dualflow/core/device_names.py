"""Names of the CPU, on which all tensors are, and the numbers of the GPUs that a process may use."""

from __future__ import annotations

import re
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError

DEVICE: Final = "/job:localhost/replica:0/task:0/device:CPU:0"
"""The full name, the ``device`` of tensors."""
_PLACE = r"(/job:\w+)?(/replica:\d+)?(/task:\d+)?/?(device:)?"
_CPU = re.compile(_PLACE + r"(cpu(:(0|\*))?)?", re.IGNORECASE)
_DEVICE = re.compile(_PLACE + r"(cpu|gpu|tpu)(:(\d+|\*))?", re.IGNORECASE)


class VisibleGpus:
    """The GPUs that compiled functions may use, by number; None for all."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers: frozenset[int] | None = None

    def has(self, number: int) -> bool:
        """Whether functions may use this GPU."""
        return self.numbers is None or number in self.numbers


VISIBLE_GPUS: Final = VisibleGpus()
"""Set by ``df.config.set_visible_devices``."""


def is_cpu(name: str) -> bool:
    """Whether a name, which may be empty, refers to the CPU."""
    return _CPU.fullmatch(name) is not None


def is_device(name: str) -> bool:
    """Whether a name refers to a device, which this machine may lack."""
    return _DEVICE.fullmatch(name) is not None


def check_device(device: Any, stream: Any = None) -> None:
    """Raise for another device than the CPU or None, and for a stream.

    Raises:
        InvalidArgumentError: ``device`` is not a name of the CPU, or a stream is given.
    """
    if device is not None and not (isinstance(device, str) and is_cpu(device)):
        raise InvalidArgumentError(
            f"{device!r} is no device of tensors: all are on the CPU, {DEVICE!r} or 'cpu'."
        )
    if stream is not None:
        raise InvalidArgumentError(f"The CPU has no streams, such as {stream!r}; leave the stream out.")
