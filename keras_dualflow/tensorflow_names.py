"""``tf``, as Keras's preprocessing layers of words and categories import it: dualflow's names.

They call TensorFlow's ops on every backend. On this backend these are dualflow's, whether or not TensorFlow
is installed.
"""

from __future__ import annotations

from typing import Any, Final

import dualflow


class _Names:
    """dualflow's names, with the attribute of Keras's modules that may be missing."""

    available: Final = True

    def __getattr__(self, name: str) -> Any:
        return getattr(dualflow, name)

    def __repr__(self) -> str:
        return "LazyModule(dualflow)"


tf: Final = _Names()
