"""The Numba types of compiled functions' parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import from_dtype

from dualflow.backends.numba.parameters import Parameter


def signature(parameters: Sequence[Parameter]) -> tuple[Any, ...]:
    """The type of each parameter: a number, or a C-contiguous array of one axis."""
    types = [(p, from_dtype(p.dtype.dtype)) for p in parameters]
    return tuple([type[::1] if p.array else type for p, type in types])
