"""What the code generator needs to know of this processor."""

from __future__ import annotations

import functools
import os
from typing import Final

from dualflow.backends.llvm.runtime import cpu_fingerprint
from dualflow.core.errors import InvalidArgumentError

VARIABLE: Final = "DUALFLOW_VECTOR_BITS"
WIDTHS: Final = (128, 256, 512)


@functools.cache
def vector_bits() -> int:
    """The width of the vectors that kernels use: the widest, or what ``DUALFLOW_VECTOR_BITS`` says.

    Code for narrower vectors is what a processor with no wider ones would run: no instruction of the
    extensions that brought them is used.

    Raises:
        InvalidArgumentError: the variable names no width, or one that this processor doesn't have.
    """
    asked = os.environ.get(VARIABLE)
    return width(asked, widest()) if asked else widest()


@functools.cache
def widest() -> int:
    """The width of this processor's widest vector registers."""
    extensions = cpu_fingerprint.features()
    if "avx512f" in extensions:
        return 512
    return 256 if "avx2" in extensions else 128


def width(asked: str, most: int) -> int:
    """The width that ``asked`` names, where vectors have ``most`` bits.

    >>> width("256", 512)
    256
    """
    if asked not in map(str, WIDTHS):
        raise InvalidArgumentError(f"{VARIABLE}={asked!r}: vectors have 128, 256 or 512 bits.")
    if int(asked) > most:
        raise InvalidArgumentError(
            f"{VARIABLE}={asked!r}: this processor's vectors have {most} bits at most."
        )
    return int(asked)
