"""Random numbers that depend on a seed of two integers alone: the ``stateless`` functions of TensorFlow.

Uniform numbers and integers, and functions of them, are TensorFlow's to the bit; normal numbers, truncated or
not, within the rounding of ``log``, ``sin`` and ``cos``. Gamma, Poisson and binomial numbers differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from dualflow.ops.static import int_or_symbolic, static_int
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, ShapeLike, TensorLike
    from dualflow.ops.random_numbers.states import AlgorithmLike
    from dualflow.ops.tensor import Tensor


def stateless_uniform(
    shape: ShapeLike,
    seed: TensorLike,
    minval: TensorLike | None = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = float32,
    name: str | None = None,
    alg: AlgorithmLike = "auto_select",
) -> Tensor:
    """Uniformly distributed numbers in ``[minval, maxval)`` that depend on ``seed`` alone.

    They come from the Philox generator: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011).

    Args:
        shape: the shape of the result; it may be a tensor that is known at run time only.
        seed: two integers, also as a tensor of shape ``(2,)``.
        minval: the lower bound; for floats it broadcasts to ``shape``. None, with ``maxval`` None: integers
            of the whole range of their dtype.
        maxval: the upper bound, which is excluded; None for 1, which only floats have.
        dtype: a float or integer dtype.
        alg: "philox" or "auto_select".

    Returns:
        A tensor of shape ``shape`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: ``seed`` has another shape, the range is empty, or the algorithm is unknown.
        DTypeError: ``seed`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.random.stateless_uniform([3], seed=(1, 2)).numpy()
    array([0.8440604 , 0.19204533, 0.9962232 ], dtype=float32)
    """
    return uniform(lambda: state_of(seed, alg), shape, minval, maxval, dtype)


def stateless_normal(
    shape: ShapeLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = float32,
    name: str | None = None,
    alg: AlgorithmLike = "auto_select",
) -> Tensor:
    """Numbers of the normal distribution that depend on ``seed`` alone, by the Box-Muller transform.

    Args:
        shape: the shape of the result; it may be a tensor that is known at run time only.
        seed: two integers, also as a tensor of shape ``(2,)``.
        mean: the mean, which broadcasts to ``shape``.
        stddev: the standard deviation, which broadcasts to ``shape``.
        dtype: a float dtype.
        alg: "philox" or "auto_select".

    Returns:
        A tensor of shape ``shape`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: ``seed`` has another shape, a parameter doesn't broadcast, or the algorithm is
            unknown.
        DTypeError: ``seed`` doesn't hold integers, or ``dtype`` is not a float dtype.

    >>> import dualflow as df
    >>> a, b = [df.random.stateless_normal([3], seed=(1, 2)) for _ in range(2)]
    >>> bool(df.reduce_all(a == b))
    True
    """
    return placed(normals(state_of(seed, alg), shape, floating(dtype)), mean, stddev)


def stateless_truncated_normal(
    shape: ShapeLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = float32,
    name: str | None = None,
    alg: AlgorithmLike = "auto_select",
) -> Tensor:
    """:func:`stateless_normal` within two standard deviations of the mean; other numbers are drawn again.

    Args:
        shape: the shape of the result; it may be a tensor that is known at run time only.
        seed: two integers, also as a tensor of shape ``(2,)``.
        mean: the mean, which broadcasts to ``shape``.
        stddev: the standard deviation before truncation, which broadcasts to ``shape``.
        dtype: a float dtype.
        alg: "philox" or "auto_select".

    Returns:
        A tensor of shape ``shape`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: ``seed`` has another shape, a parameter doesn't broadcast, or the algorithm is
            unknown.
        DTypeError: ``seed`` doesn't hold integers, or ``dtype`` is not a float dtype.

    >>> import dualflow as df
    >>> bool(df.reduce_all(df.abs(df.random.stateless_truncated_normal([99], seed=(1, 2))) <= 2.0))
    True
    """
    return placed(truncated_normals(state_of(seed, alg), shape, floating(dtype)), mean, stddev)


def stateless_gamma(
    shape: ShapeLike,
    seed: TensorLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = float32,
    name: str | None = None,
) -> Tensor:
    """Numbers of gamma distributions that depend on ``seed`` alone.

    They are positive: those that would round to 0 are the least normal number of the dtype. A gradient flows
    to ``beta`` only.

    Args:
        shape: the shape of the result.
        seed: two integers, also as a tensor of shape ``(2,)``.
        alpha: the shape parameters, which broadcast to ``shape``.
        beta: the rates, likewise; None for 1.
        dtype: a float dtype.

    Returns:
        A tensor of shape ``shape`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: ``seed`` has another shape, or a parameter doesn't broadcast.
        DTypeError: ``seed`` doesn't hold integers, or ``dtype`` is not a float dtype.

    >>> import dualflow as df
    >>> df.random.stateless_gamma([4, 2], seed=(1, 2), alpha=[0.5, 3.0]).shape.as_list()
    [4, 2]
    """
    return gammas(state_of(seed), shape, alpha, beta, floating(dtype))


def stateless_poisson(
    shape: ShapeLike, seed: TensorLike, lam: TensorLike, dtype: DTypeLike = int32, name: str | None = None
) -> Tensor:
    """Numbers of Poisson distributions that depend on ``seed`` alone.

    Args:
        shape: the shape of the result.
        seed: two integers, also as a tensor of shape ``(2,)``.
        lam: the means, which broadcast to ``shape``.
        dtype: a float or integer dtype.

    Returns:
        A tensor of shape ``shape`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: ``seed`` has another shape, or ``lam`` doesn't broadcast or is negative.
        DTypeError: ``seed`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.random.stateless_poisson([4, 2], seed=(1, 2), lam=[0.5, 3.0]).shape
    (4, 2)
    """
    lam = convert_to_tensor(lam, dtype_hint=float32)
    return sampled(state_of(seed), "poisson", shape, as_dtype(dtype), lam)


def stateless_binomial(
    shape: ShapeLike,
    seed: TensorLike,
    counts: TensorLike,
    probs: TensorLike,
    output_dtype: DTypeLike = int32,
    name: str | None = None,
) -> Tensor:
    """The number of successes in ``counts`` trials, which depends on ``seed`` alone.

    Args:
        shape: the shape of the result.
        seed: two integers, also as a tensor of shape ``(2,)``.
        counts: the numbers of trials, which broadcast to ``shape``.
        probs: the probabilities of success, likewise.
        output_dtype: a float or integer dtype.

    Returns:
        A tensor of shape ``shape`` and dtype ``output_dtype``.

    Raises:
        InvalidArgumentError: a count is negative, a probability is outside of [0, 1], or ``seed`` has another
            shape.
        DTypeError: ``seed`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.random.stateless_binomial([3], seed=(1, 2), counts=10.0, probs=1.0).numpy()
    array([10, 10, 10], dtype=int32)
    """
    return binomials(state_of(seed), shape, counts, probs, as_dtype(output_dtype))


def stateless_parameterized_truncated_normal(
    shape: ShapeLike,
    seed: TensorLike,
    means: TensorLike = 0.0,
    stddevs: TensorLike = 1.0,
    minvals: TensorLike = -2.0,
    maxvals: TensorLike = 2.0,
    name: str | None = None,
) -> Tensor:
    """Numbers of normal distributions between bounds, which depend on ``seed`` alone.

    Args:
        shape: the shape of the result.
        seed: two integers, also as a tensor of shape ``(2,)``.
        means: the means before truncation; all four parameters broadcast to ``shape``.
        stddevs: the standard deviations before truncation.
        minvals: the lower bounds.
        maxvals: the upper bounds.

    Returns:
        A tensor of shape ``shape`` with the dtype of ``means``.

    Raises:
        InvalidArgumentError: ``minvals`` is not below ``maxvals``, or ``seed`` has another shape.
        DTypeError: ``seed`` doesn't hold integers, or ``means`` floats.

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
    logits: TensorLike,
    num_samples: IntLike,
    seed: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Class numbers drawn by the ``softmax(logits)`` of each row, which depend on ``seed`` alone.

    Args:
        logits: floats of shape ``(rows, classes)``.
        num_samples: the number of draws for each row.
        seed: two integers, also as a tensor of shape ``(2,)``.
        dtype: an integer dtype; None for int64.

    Returns:
        A tensor of shape ``(rows, num_samples)`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: ``logits`` or ``seed`` has another shape.
        DTypeError: ``logits`` doesn't hold floats.

    >>> import dualflow as df
    >>> df.random.stateless_categorical([[0.0, 99.0]], 3, seed=(1, 2)).numpy()
    array([[1, 1, 1]])
    """
    logits = convert_to_tensor(logits)
    if len(logits.shape) != 2:
        raise InvalidArgumentError(f"logits are of shape (rows, classes), not {logits.shape}; reshape them.")
    floating(logits.dtype)
    shape = [axis_size(logits, 0), int_or_symbolic(num_samples, "num_samples")]
    wide = cast(logits, float64)
    upto = cumsum(exp(wide - reduce_max(wide, 1, keepdims=True)), 1)
    drawn = fractions(state_of(seed), shape, float64) * upto[:, -1:]
    below = cast(expand_dims(upto, 1) <= expand_dims(drawn, 2), int64 if dtype is None else as_dtype(dtype))
    return reduce_sum(below, 2)


def stateless_shuffle(
    value: TensorLike, seed: TensorLike, alg: AlgorithmLike = "auto_select", name: str | None = None
) -> Tensor:
    """``value`` with the slices along its first axis in an order that depends on ``seed`` alone.

    Args:
        value: a tensor of one axis or more, of any dtype.
        seed: two integers, also as a tensor of shape ``(2,)``.
        alg: "philox" or "auto_select".

    Returns:
        A tensor with the shape and dtype of ``value``.

    Raises:
        InvalidArgumentError: ``seed`` has another shape, or the algorithm is unknown.
        DTypeError: ``seed`` doesn't hold integers.

    >>> import dualflow as df
    >>> sorted(df.random.experimental.stateless_shuffle([1, 2, 3], seed=(1, 2)).numpy().tolist())
    [1, 2, 3]
    """
    value = convert_to_tensor(value)
    keys = full_integers(state_of(seed, alg), value.shape[:1], int64)
    return gather(value, argsort(keys, stable=True))


@entry
def split(seed: TensorLike, num: IntLike = 2, alg: AlgorithmLike = "auto_select") -> Tensor:
    """``num`` new seeds from one.

    Args:
        seed: two integers.
        num: the number of new seeds.
        alg: "philox" or "auto_select".

    Returns:
        A tensor of shape ``(num, 2)`` with the dtype of ``seed``.

    Raises:
        InvalidArgumentError: ``seed`` has another shape, or the algorithm is unknown.
        DTypeError: ``seed`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.random.split([1, 2], num=3).numpy().tolist()
    [[1105988140, 1738052849], [-335576002, 370444179], [10670227, -246211131]]
    """
    seed = convert_to_tensor(seed)
    return full_integers(state_of(seed, alg), [static_int(num, "num"), 2], seed.dtype)


@entry
def fold_in(seed: TensorLike, data: TensorLike, alg: AlgorithmLike = "auto_select") -> Tensor:
    """A new seed from one and an integer.

    Args:
        seed: two integers.
        data: an integer scalar.
        alg: "philox" or "auto_select".

    Returns:
        A tensor of shape ``(2,)`` with the dtype of ``data``.

    Raises:
        InvalidArgumentError: ``seed`` has another shape, or the algorithm is unknown.
        DTypeError: ``seed`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.random.fold_in([1, 2], 3).numpy().tolist()
    [1105988140, 3]
    """
    data = convert_to_tensor(data)
    return stack([full_integers(state_of(seed, alg), [], data.dtype), data], 0)
