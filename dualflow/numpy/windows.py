"""Windows of signals, as vectors of float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.tracebacks import make_entries
from dualflow.numpy.operands import tensor
from dualflow.ops.static import static_int
from dualflow.ops.tensor import Tensor


def bartlett(M: Any) -> Tensor:
    """Bartlett's window of ``M`` points: a triangle from 0 to 1 and back."""
    return tensor(np.bartlett(static_int(M, "M")))


def blackman(M: Any) -> Tensor:
    """Blackman's window of ``M`` points: a sum of three cosines."""
    return tensor(np.blackman(static_int(M, "M")))


def hamming(M: Any) -> Tensor:
    """Hamming's window of ``M`` points: a raised cosine that ends at 0.08."""
    return tensor(np.hamming(static_int(M, "M")))


def hanning(M: Any) -> Tensor:
    """Hann's window of ``M`` points: a raised cosine that ends at 0.

    >>> import dualflow as df
    >>> df.numpy.hanning(5).numpy().round(3)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return tensor(np.hanning(static_int(M, "M")))


def kaiser(M: Any, beta: Any) -> Tensor:
    """Kaiser's window of ``M`` points, narrower for a larger ``beta``."""
    return tensor(np.kaiser(static_int(M, "M"), float(beta)))


make_entries(globals())
