"""Names of the CPU and of the GPU, and the numbers of the GPUs that a process may use."""

from __future__ import annotations

import re
from typing import Any, Final, Self

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.tracebacks import entry

CPU: Final = "/job:localhost/replica:0/task:0/device:CPU:0"
"""The full name of the CPU, the ``device`` of tensors on the host."""
GPU: Final = "/job:localhost/replica:0/task:0/device:GPU:0"
"""The full name of the GPU that a process uses, the ``device`` of tensors in its memory."""
_PLACE = r"(/job:\w+)?(/replica:\d+)?(/task:\d+)?/?(device:)?"
_CPU = re.compile(_PLACE + r"(cpu(:(0|\*))?)?", re.IGNORECASE)
_GPU = re.compile(_PLACE + r"gpu(:(0|\*))?", re.IGNORECASE)
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


_FULL = re.compile(
    r"(/job:(?P<job>\w+))?(/replica:(?P<replica>\d+))?(/task:(?P<task>\d+))?"
    r"(/?(device:)?(?P<kind>[a-zA-Z]\w*):(?P<index>\d+|\*))?"
)


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """The parts of the name of a device, each of which may be missing.

    Args:
        job, replica, task: of the process.
        device_type: such as "CPU".
        device_index: of the device.

    >>> import dualflow as df
    >>> spec = df.DeviceSpec.from_string("/job:localhost/device:CPU:0")
    >>> spec.job, spec.device_type, spec.device_index, spec.to_string()
    ('localhost', 'CPU', 0, '/job:localhost/device:CPU:0')
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    @classmethod
    @entry
    def from_string(cls, spec: str) -> Self:
        """The parts of a name.

        Raises:
            InvalidArgumentError: ``spec`` is no name of a device.
        """
        parts = _FULL.fullmatch(spec)
        if parts is None:
            raise InvalidArgumentError(f"{spec!r} is no name of a device, such as {CPU!r}.")
        kind, index = parts["kind"], parts["index"]
        return cls(
            parts["job"],
            _number(parts["replica"]),
            _number(parts["task"]),
            None if kind is None else kind.upper(),
            None if index == "*" else _number(index),
        )

    def to_string(self) -> str:
        """The name."""
        numbers = {"job": self.job, "replica": self.replica, "task": self.task}
        name = "".join([f"/{part}:{value}" for part, value in numbers.items() if value is not None])
        if self.device_type is None:
            return name
        return f"{name}/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}"

    def replace(self, **kwargs: object) -> DeviceSpec:
        """The spec with other values of these parts."""
        names = ("job", "replica", "task", "device_type", "device_index")
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        return DeviceSpec(**{**values, **kwargs})


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def is_cpu(name: str) -> bool:
    """Whether a name, which may be empty, refers to the CPU."""
    return _CPU.fullmatch(name) is not None


def is_gpu(name: str) -> bool:
    """Whether a name refers to the GPU that a process uses, the first visible one."""
    return _GPU.fullmatch(name) is not None


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
            f"{device!r} is no device of tensors: all are on the CPU, {CPU!r} or 'cpu'."
        )
    if stream is not None:
        raise InvalidArgumentError(f"The CPU has no streams, such as {stream!r}; leave the stream out.")
