"""Random numbers by NumPy's old names: ``df.numpy.random``. The stream is that of :mod:`dualflow.random`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow import random as source
from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import numpy_dtype
from dualflow.ops.static import ints_or_symbolic
from dualflow.ops.tensor import Tensor

__all__ = ["normal", "poisson", "rand", "randint", "randn", "random", "seed", "standard_normal", "uniform"]


def _sizes(size: Any) -> tuple[Any, ...]:
    return () if size is None else ints_or_symbolic(size, "size")


def seed(s: int) -> None:
    """Restarts the global stream of random numbers from the seed ``s``.

    Args:
        s: an integer.

    Returns:
        None.

    Raises:
        ValueError: ``s`` is no integer.

    >>> import dualflow as df
    >>> df.numpy.random.seed(7)
    >>> first = float(df.numpy.random.rand())
    >>> df.numpy.random.seed(7)
    >>> float(df.numpy.random.rand()) == first
    True
    """
    source.set_seed(int(s))


def rand(*size: Any) -> Tensor:
    """Uniform numbers in [0, 1).

    Args:
        *size: the sizes of the result, integers.

    Returns:
        A float64 tensor of the shape ``size``.

    Raises:
        InvalidArgumentError: a size is negative.

    >>> import dualflow as df
    >>> df.numpy.random.rand(2, 3).shape
    (2, 3)
    """
    return source.uniform(_sizes(size), dtype=np.float64)


def randn(*size: Any) -> Tensor:
    """Standard normal numbers.

    Args:
        *size: the sizes of the result, integers.

    Returns:
        A float64 tensor of the shape ``size``.

    Raises:
        InvalidArgumentError: a size is negative.

    >>> import dualflow as df
    >>> df.numpy.random.randn(2, 3).shape
    (2, 3)
    """
    return source.normal(_sizes(size), dtype=np.float64)


def random(size: ShapeLike | None = None) -> Tensor:
    """Uniform numbers in [0, 1).

    Returns:
        A float64 tensor of the shape ``size``.

    Raises:
        InvalidArgumentError: a size is negative.

    >>> import dualflow as df
    >>> df.numpy.random.random((2, 3)).shape
    (2, 3)
    """
    return rand(*_sizes(size))


def standard_normal(size: ShapeLike | None = None) -> Tensor:
    """Standard normal numbers.

    Returns:
        A float64 tensor of the shape ``size``.

    Raises:
        InvalidArgumentError: a size is negative.

    >>> import dualflow as df
    >>> df.numpy.random.standard_normal((2, 3)).shape
    (2, 3)
    """
    return randn(*_sizes(size))


def normal(loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: ShapeLike | None = None) -> Tensor:
    """Normal numbers with the mean ``loc`` and the standard deviation ``scale``.

    Args:
        loc: the mean, a number or numbers that broadcast with the result.
        scale: the standard deviation, as ``loc``.

    Returns:
        A float64 tensor of the shape ``size``, broadcast with ``loc`` and ``scale``.

    Raises:
        InvalidArgumentError: a size is negative, or the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.random.normal(10.0, 2.0, (2, 3)).shape
    (2, 3)
    """
    return randn(*_sizes(size)) * scale + loc


def uniform(low: float | Tensor = 0.0, high: float | Tensor = 1.0, size: ShapeLike | None = None) -> Tensor:
    """Uniform numbers in [low, high).

    Args:
        low: the lower bound, a number or numbers that broadcast with the result.
        high: the upper bound, as ``low``.

    Returns:
        A float64 tensor of the shape ``size``, broadcast with the bounds.

    Raises:
        InvalidArgumentError: a size is negative, or the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.random.uniform(-1.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    return rand(*_sizes(size)) * (high - low) + low


def randint(
    low: float | Tensor,
    high: float | Tensor | None = None,
    size: ShapeLike | None = None,
    dtype: DTypeLike = np.int64,
) -> Tensor:
    """Uniform integers in [low, high).

    Args:
        low: the lower bound; the upper one if ``high`` is None, and then the lower bound is 0.
        high: the upper bound, which is excluded; None by default.
        dtype: the dtype; int64 by default.

    Returns:
        A tensor of shape ``size``, in ``dtype``.

    Raises:
        InvalidArgumentError: a size is negative, or ``low`` is not below ``high``.

    >>> import dualflow as df
    >>> df.numpy.random.randint(5, size=(2, 3)).shape
    (2, 3)
    """
    first, last = (0, low) if high is None else (low, high)
    return source.uniform(_sizes(size), first, last, dtype=numpy_dtype(dtype))


def poisson(lam: TensorLike = 1.0, size: ShapeLike | None = None) -> Tensor:
    """Numbers of a Poisson distribution.

    Args:
        lam: the mean, a number or numbers that broadcast with the result, 0 or more.

    Returns:
        An int64 tensor of the shape ``size``, then that of ``lam``.

    Raises:
        InvalidArgumentError: a size or a mean is negative.

    >>> import dualflow as df
    >>> df.numpy.random.poisson(3.0, (2, 3)).shape
    (2, 3)
    """
    return source.poisson(_sizes(size), lam, dtype=np.int64)


complete_docstrings(
    globals(),
    size="the shape, an integer or a list of them; by default the result is a number.",
)
make_entries(globals())
_publish(globals())
