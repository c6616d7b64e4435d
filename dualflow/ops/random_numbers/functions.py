"""The stateful functions of ``df.random``: draws from the shared stream, or from a seed's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float32, int64
from dualflow.core.tracebacks import entry
from dualflow.ops.random_numbers import draws
from dualflow.ops.random_numbers.streams import stream

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


@entry
def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: Any = None,
) -> Tensor:
    """Numbers of the normal distribution.

    Args:
        shape: sizes known now.
        mean: of the distribution; broadcasts to ``shape``.
        stddev: standard deviation of the distribution; broadcasts to ``shape``.
        dtype: float16, float32 or float64.
        seed: a stream of its own for the calls with this seed.
        name: ignored; as in TensorFlow.
    """
    return draws.normal(stream(seed), shape, mean, stddev, dtype)


@entry
def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: Any = None,
) -> Tensor:
    """As :func:`normal`, but numbers further than two standard deviations from the mean are drawn again."""
    return draws.truncated_normal(stream(seed), shape, mean, stddev, dtype)


@entry
def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: Any = None,
) -> Tensor:
    """Numbers of equal chance in ``[minval, maxval)``.

    Args:
        shape: sizes known now.
        minval: the least number.
        maxval: above all numbers; 1 by default, and needed for integers.
        dtype: a float or integer dtype.
        seed: a stream of its own for the calls with this seed.
        name: ignored; as in TensorFlow.
    """
    return draws.uniform(stream(seed), shape, minval, maxval, dtype)


@entry
def shuffle(value: Any, seed: int | None = None, name: Any = None) -> Tensor:
    """``value`` with the slices of its first axis in random order."""
    return draws.shuffle(stream(seed), value)


@entry
def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: Any = None
) -> Tensor:
    """Class numbers drawn by the softmax of each row: [rows, classes] logits give [rows, num_samples]."""
    return draws.categorical(stream(seed), logits, num_samples, dtype or int64)


@entry
def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = float32, seed: int | None = None, name: Any = None
) -> Tensor:
    """Gamma numbers of shape parameter ``alpha`` and rate ``beta``, of shape ``shape + alpha.shape``.

    All are positive: those that the dtype would round to 0 are its least normal number.
    """
    return draws.gamma(stream(seed), shape, alpha, beta, dtype)


@entry
def poisson(shape: Any, lam: Any, dtype: Any = float32, seed: int | None = None, name: Any = None) -> Tensor:
    """Poisson numbers of mean ``lam``, of shape ``shape + lam.shape``."""
    return draws.poisson(stream(seed), shape, lam, dtype)
