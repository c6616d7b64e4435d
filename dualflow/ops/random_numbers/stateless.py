"""Random numbers that a seed of two integers alone decides: the ``stateless`` functions, as in TensorFlow.

Uniform numbers and integers, and what is made of them, are TensorFlow's to the bit; normal numbers, truncated
or not, within the rounding of ``log``, ``sin`` and ``cos``. Gamma, Poisson and binomial numbers are others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import as_dtype, float32, float64, int32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.exponential import exp
from dualflow.ops.joining import stack
from dualflow.ops.random_numbers.distributions import (
    floating,
    fractions,
    full_integers,
    normals,
    placed,
    uniform,
)
from dualflow.ops.random_numbers.rejection import binomials, gammas, sampled, truncated_normals
from dualflow.ops.random_numbers.states import state_of
from dualflow.ops.reduction import reduce_max
from dualflow.ops.scans import cumsum
from dualflow.ops.sorting import argsort
from dualflow.ops.static import static_int
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Numbers of equal chance in ``[minval, maxval)``, which ``seed`` alone decides.

    Args:
        shape: sizes, which may be a tensor that only the run knows.
        seed: two integers, of shape [2]; they may be such a tensor, too.
        minval: the least number; floats broadcast to ``shape``. None with ``maxval`` None: integers of the
            whole range of their dtype.
        maxval: above all numbers; 1 by default, and needed for integers.
        dtype: a float or integer dtype.
        alg: "philox" or "auto_select".

    Raises:
        InvalidArgumentError: a seed of another shape, an empty range, or another algorithm.
        DTypeError: a seed that is not of integers.

    >>> import dualflow as df
    >>> df.random.stateless_uniform([3], seed=(1, 2)).numpy()
    array([0.8440604 , 0.19204533, 0.9962232 ], dtype=float32)
    """
    return uniform(lambda: state_of(seed, alg), shape, minval, maxval, dtype)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Normal numbers of mean ``mean`` and standard deviation ``stddev``, which ``seed`` alone decides.

    ``mean`` and ``stddev`` broadcast to ``shape``; for the other arguments and errors see
    :func:`stateless_uniform`.

    >>> import dualflow as df
    >>> a, b = [df.random.stateless_normal([3], seed=(1, 2)) for _ in range(2)]
    >>> bool(df.reduce_all(a == b))
    True
    """
    return placed(normals(state_of(seed, alg), shape, floating(dtype)), mean, stddev)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """As :func:`stateless_normal`, but what lies beyond two standard deviations is drawn again."""
    return placed(truncated_normals(state_of(seed, alg), shape, floating(dtype)), mean, stddev)


def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """Gamma numbers of shape parameter ``alpha`` and rate ``beta`` (1 by default), which ``seed`` decides.

    Both broadcast to ``shape``. A gradient flows to ``beta`` only. All numbers are positive: those that the
    dtype would round to 0 are its least normal number.

    >>> import dualflow as df
    >>> df.random.stateless_gamma([4, 2], seed=(1, 2), alpha=[0.5, 3.0]).shape.as_list()
    [4, 2]
    """
    return gammas(state_of(seed), shape, alpha, beta, floating(dtype))


def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = int32, name: str | None = None) -> Tensor:
    """Poisson numbers of mean ``lam``, which broadcasts to ``shape``; ``seed`` alone decides them."""
    lam = convert_to_tensor(lam, dtype_hint=float32)
    return sampled(state_of(seed), "poisson", shape, as_dtype(dtype), lam)


def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = int32, name: str | None = None
) -> Tensor:
    """How many of ``counts`` tries with a chance of ``probs`` succeed; ``seed`` alone decides it.

    ``counts`` and ``probs`` broadcast to ``shape``.

    Raises:
        InvalidArgumentError: a negative count, or a chance outside of [0, 1].
    """
    return binomials(state_of(seed), shape, counts, probs, as_dtype(output_dtype))


def stateless_parameterized_truncated_normal(
    shape: Any,
    seed: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: str | None = None,
) -> Tensor:
    """Normal numbers of given means and deviations between given ends; ``seed`` alone decides them.

    All four broadcast to ``shape``; the result has the dtype of ``means``.

    Raises:
        InvalidArgumentError: ``minvals`` that are not below ``maxvals``.

    >>> import dualflow as df
    >>> x = df.random.stateless_parameterized_truncated_normal([99], (1, 2), 0.0, 1.0, 8.0, 9.0)
    >>> bool(df.reduce_all((x >= 8) & (x <= 9)))
    True
    """
    means = convert_to_tensor(means, dtype_hint=float32)
    low, high = (minvals - means) / stddevs, (maxvals - means) / stddevs
    drawn = sampled(state_of(seed), "bounded normal", shape, floating(means.dtype), low, high)
    return drawn * stddevs + means


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = int64, name: str | None = None
) -> Tensor:
    """Class numbers drawn by the softmax of each row: [rows, classes] logits give [rows, num_samples].

    ``seed`` alone decides them.

    Raises:
        InvalidArgumentError: logits of another rank.
        DTypeError: logits that are not floats.

    >>> import dualflow as df
    >>> df.random.stateless_categorical([[0.0, 99.0]], 3, seed=(1, 2)).numpy()
    array([[1, 1, 1]])
    """
    logits = convert_to_tensor(logits)
    if len(logits.shape) != 2:
        raise InvalidArgumentError(f"logits are of shape (rows, classes), not {logits.shape}; reshape them.")
    floating(logits.dtype)
    count = static_int(num_samples, "num_samples")
    wide = cast(logits, float64)
    upto = cumsum(exp(wide - reduce_max(wide, 1, keepdims=True)), 1)
    drawn = fractions(state_of(seed), [logits.shape[0], count], float64) * upto[:, -1:]
    below = cast(expand_dims(upto, 1) <= expand_dims(drawn, 2), as_dtype(dtype))
    return reduce_sum(below, 2)


def stateless_shuffle(value: Any, seed: Any, alg: Any = "auto_select", name: str | None = None) -> Tensor:
    """``value`` with the slices of its first axis in an order that ``seed`` alone decides.

    >>> import dualflow as df
    >>> sorted(df.random.experimental.stateless_shuffle([1, 2, 3], seed=(1, 2)).numpy().tolist())
    [1, 2, 3]
    """
    value = convert_to_tensor(value)
    keys = full_integers(state_of(seed, alg), value.shape[:1], int64)
    return gather(value, argsort(keys, stable=True))


@entry
def split(seed: Any, num: Any = 2, alg: Any = "auto_select") -> Tensor:
    """``num`` new seeds of one, of shape [num, 2] and the dtype of ``seed``.

    >>> import dualflow as df
    >>> df.random.split([1, 2], num=3).numpy().tolist()
    [[1105988140, 1738052849], [-335576002, 370444179], [10670227, -246211131]]
    """
    seed = convert_to_tensor(seed)
    return full_integers(state_of(seed, alg), [static_int(num, "num"), 2], seed.dtype)


@entry
def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """A new seed of one and of the integer ``data``, in the dtype of ``data``.

    >>> import dualflow as df
    >>> df.random.fold_in([1, 2], 3).numpy().tolist()
    [1105988140, 3]
    """
    data = convert_to_tensor(data)
    return stack([full_integers(state_of(seed, alg), [], data.dtype), data], 0)
