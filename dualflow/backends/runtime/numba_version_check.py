"""The versions of Numba that compile the source of this backend."""

from __future__ import annotations

from typing import Final

import numba

from dualflow.core.errors import FailedPreconditionError

NUMBA: Final = "numba>=0.66,<0.69"
_FIRST, _BEYOND = (0, 66), (0, 69)


def require_numba() -> None:
    """Raise FailedPreconditionError unless the installed Numba satisfies :data:`NUMBA`.

    The generated source declares LLVM's intrinsics itself, as the LLVM of these versions defines them.
    """
    installed = numba.__version__
    if not _FIRST <= tuple(int(part) for part in installed.split(".")[:2]) < _BEYOND:
        raise FailedPreconditionError(
            f"Numba {installed} is installed here; kernels are written for {NUMBA}. Install that with "
            f"pip install '{NUMBA}', or choose another backend: df.config.set_backend(\"llvm\")."
        )
