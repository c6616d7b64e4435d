"""``tensorflow``, as Keras's preprocessing layers and dataset loaders import it: dualflow's names.

They call TensorFlow's ops on every backend. On this backend these are dualflow's, whether or not TensorFlow
is installed. They import this module in place of ``keras.src.utils.module_utils``, whose other names it has.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import dualflow


class _Names:
    """dualflow's names, with the attribute of Keras's modules that may be missing."""

    available: Final = True

    def __getattr__(self, name: str) -> Any:
        return getattr(dualflow, name)

    def __repr__(self) -> str:
        return "LazyModule(dualflow)"


tensorflow: Final = _Names()


def __getattr__(name: str) -> Any:
    """Another of Keras's modules that may be missing, such as ``grain``."""
    return getattr(sys.modules["keras.src.utils.module_utils"], name)
