"""Names of layouts, and options for each axis of an input."""

from __future__ import annotations

from typing import Any

_NAMES = {
    "channels_last": {3: "NWC", 4: "NHWC", 5: "NDHWC"},
    "channels_first": {3: "NCW", 4: "NCHW", 5: "NCDHW"},
}


def dimensions(x: Any, what: str) -> int:
    """The number of axes other than those of the batch and the channels: one to three.

    Raises:
        ValueError: another number.
    """
    count = len(x.shape) - 2
    if not 1 <= count <= 3:
        raise ValueError(
            f"`{what}` takes inputs of rank 3, 4 or 5: a batch, one to three axes, and channels. "
            f"Received: inputs.shape={x.shape}"
        )
    return count


def layout(data_format: str, rank: int) -> str:
    """The name of a layout: ``NHWC`` for channels last and rank 4."""
    return _NAMES[data_format][rank]


def per_axis(option: Any, count: int) -> tuple[Any, ...]:
    """``option`` as a tuple of ``count`` numbers, from one number for all axes or one for each."""
    return (option,) * count if isinstance(option, int) else tuple(option)
