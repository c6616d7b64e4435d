"""The versions of Numba that compile the source of this room."""

from __future__ import annotations

from typing import Final

import numba

from dualflow.core.errors import FailedPreconditionError

NUMBA: Final = "numba>=0.66,<0.69"
_FIRST, _BEYOND = (0, 66), (0, 69)


def require_numba() -> None:
    """Raise FailedPreconditionError where another Numba than :data:`NUMBA` is installed.

    The source that is written declares LLVM's intrinsics itself, as the LLVM of these versions has them.
    """
    found = numba.__version__
    if not _FIRST <= tuple(int(part) for part in found.split(".")[:2]) < _BEYOND:
        raise FailedPreconditionError(
            f"Numba {found} is installed here; kernels are written for {NUMBA}. Install that with "
            f"pip install '{NUMBA}', or choose another backend: df.config.set_backend(\"llvm\")."
        )
