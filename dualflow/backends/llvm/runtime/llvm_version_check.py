"""The versions of llvmlite that parse the text of kernels."""

from __future__ import annotations

from typing import Final

import llvmlite

from dualflow.backends.llvm.runtime import llvm_library
from dualflow.core.errors import FailedPreconditionError

LLVMLITE: Final = "llvmlite>=0.48,<0.51"
LLVM: Final = 22
"""The major version of LLVM in the releases of llvmlite that :data:`LLVMLITE` accepts.

Its text format changes between versions: up to 21, masked loads and stores take their alignment as an
argument, later as an attribute of the address.
"""


def llvm_version() -> str:
    """The installed version of LLVM."""
    return ".".join(map(str, llvm_library.version()))


def require_llvm() -> None:
    """Raise FailedPreconditionError unless the installed LLVM has version :data:`LLVM`."""
    if llvm_library.version()[0] != LLVM:
        raise FailedPreconditionError(
            f"llvmlite {llvmlite.__version__} is installed here, with LLVM {llvm_version()}; kernels are "
            f"written for LLVM {LLVM}. Install it with pip install '{LLVMLITE}', or do without: "
            'df.config.set_backend("numpy").'
        )
