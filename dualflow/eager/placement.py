"""The placement of eager ops: the device of the innermost block, soft placement, and the log."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Final


class SoftPlacement:
    """Whether ops that a device can't run run on the CPU; otherwise they are errors."""

    __slots__ = ("enabled",)

    def __init__(self) -> None:
        self.enabled = True


SOFT_PLACEMENT: Final = SoftPlacement()
"""Set by ``df.config.set_soft_device_placement``."""

BLOCK_DEVICE: Final[ContextVar[str | None]] = ContextVar("dualflow_device", default=None)
"""The full name of the device of the innermost ``df.device`` block; None outside of all."""


class PlacementLog:
    """Prints a line for each op that runs, with its device, while enabled.

    :mod:`dualflow.eager.placed_ops` adds the ops on a GPU, :mod:`dualflow.eager.placement_log` those on the
    CPU.
    """

    __slots__ = ("enabled",)

    def __init__(self) -> None:
        self.enabled = False

    def add(self, op_name: str, device: str) -> None:
        """Print the device on which an op runs."""
        if self.enabled:
            print(f"Executing op {op_name} in device {device}", file=sys.stderr)

    def add_part(self, function_name: str, part: str, device: str) -> None:
        """Print the device on which a part of a compiled function has run."""
        print(f"Executed {part} of {function_name} in device {device}", file=sys.stderr)


PLACEMENT_LOG: Final = PlacementLog()
"""Set by ``df.debugging.set_log_device_placement``."""
