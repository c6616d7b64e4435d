"""The placement of eager ops: the device of the innermost ``df.device`` block, and soft placement."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final


class SoftPlacement:
    """Whether what a device can't do runs on the CPU; otherwise it is an error."""

    __slots__ = ("enabled",)

    def __init__(self) -> None:
        self.enabled = True


SOFT_PLACEMENT: Final = SoftPlacement()
"""Set by ``df.config.set_soft_device_placement``."""

BLOCK_DEVICE: Final[ContextVar[str | None]] = ContextVar("dualflow_device", default=None)
"""The full name of the device of the innermost ``df.device`` block; None outside of all."""
