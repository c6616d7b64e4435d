"""The device on which code that is being traced places its ops: the mark that nodes of a graph get."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Final

TRACED_DEVICE: Final[ContextVar[str | None]] = ContextVar("dualflow_traced_device", default=None)
"""The full name of the device of the innermost ``df.device`` block of traced code; None outside of all."""


class traced_on:
    """``with traced_on(device):`` places the ops that the block traces on a device; None places none."""

    __slots__ = ("_device", "_token")

    def __init__(self, device: str | None) -> None:
        self._device = device

    def __enter__(self) -> None:
        self._token: Token[str | None] = TRACED_DEVICE.set(self._device)

    def __exit__(self, *exc: object) -> None:
        TRACED_DEVICE.reset(self._token)
