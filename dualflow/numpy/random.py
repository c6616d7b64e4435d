"""Random numbers by NumPy's old names: ``df.numpy.random``. The stream is that of :mod:`dualflow.random`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow import random as source
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.operands import numpy_dtype
from dualflow.ops.static import ints
from dualflow.ops.tensor import Tensor

__all__ = ["normal", "poisson", "rand", "randint", "randn", "random", "seed", "standard_normal", "uniform"]


def _sizes(size: Any) -> tuple[int, ...]:
    return () if size is None else ints(size, "size")


def seed(s: Any) -> None:
    """Begin the stream of the seed ``s``, an integer.

    >>> import dualflow as df
    >>> df.numpy.random.seed(7)
    >>> first = float(df.numpy.random.rand())
    >>> df.numpy.random.seed(7)
    >>> float(df.numpy.random.rand()) == first
    True
    """
    source.set_seed(int(s))


def rand(*size: Any) -> Tensor:
    """Numbers from 0 to 1, of these sizes, in float64."""
    return source.uniform(_sizes(size), dtype=np.float64)


def randn(*size: Any) -> Tensor:
    """Normal numbers, of these sizes, in float64."""
    return source.normal(_sizes(size), dtype=np.float64)


def random(size: Any = None) -> Tensor:
    """Numbers from 0 to 1, of the shape ``size``, in float64."""
    return rand(*_sizes(size))


def standard_normal(size: Any = None) -> Tensor:
    """Normal numbers, of the shape ``size``, in float64."""
    return randn(*_sizes(size))


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
    """Normal numbers of this mean and deviation, of the shape ``size``, in float64."""
    return randn(*_sizes(size)) * scale + loc


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
    """Numbers of equal chance from ``low`` to ``high``, of the shape ``size``, in float64."""
    return rand(*_sizes(size)) * (high - low) + low


def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Tensor:
    """Integers of equal chance from ``low`` (0 where one limit is given) to ``high``, which is left out."""
    first, last = (0, low) if high is None else (low, high)
    return source.uniform(_sizes(size), first, last, dtype=numpy_dtype(dtype))


def poisson(lam: Any = 1.0, size: Any = None) -> Tensor:
    """Poisson's numbers of the mean ``lam``, of the shape ``size``, in int64."""
    return source.poisson(_sizes(size), lam, dtype=np.int64)


make_entries(globals())
_publish(globals())
