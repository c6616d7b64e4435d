"""The vector width for which code is generated."""

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
    """The vector width of kernels in bits: ``DUALFLOW_VECTOR_BITS``, or the widest of this processor.

    Code for narrower vectors is the code for a processor without wider ones: it uses no instruction of the
    extensions that introduced them.

    Raises:
        InvalidArgumentError: the variable is no vector width, or wider than this processor's.
    """
    setting = os.environ.get(VARIABLE)
    return width(setting, widest()) if setting else widest()


@functools.cache
def widest() -> int:
    """The width of this processor's widest vector registers in bits."""
    extensions = cpu_fingerprint.features()
    if "avx512f" in extensions:
        return 512
    return 256 if "avx2" in extensions else 128


def width(setting: str, most: int) -> int:
    """The vector width in bits that ``setting`` requests, at most ``most``, the processor's.

    >>> width("256", 512)
    256
    """
    if setting not in map(str, WIDTHS):
        raise InvalidArgumentError(f"{VARIABLE}={setting!r}: vectors have 128, 256 or 512 bits.")
    if int(setting) > most:
        raise InvalidArgumentError(
            f"{VARIABLE}={setting!r}: this processor's vectors have {most} bits at most."
        )
    return int(setting)
