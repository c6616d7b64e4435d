"""The stateful functions of ``df.random``: draws from the shared stream, or from a seed's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.dtypes import float32, int64
from dualflow.core.tracebacks import entry
from dualflow.ops.random_numbers import draws
from dualflow.ops.random_numbers.streams import stream

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


@entry
def normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers of the normal distribution.

    Up to 32,768 numbers come from NumPy's Philox generator. More are computed by kernels and threads from a
    state that it draws, by the transform of Box and Muller (1958): the same for any number of threads.

    Args:
        shape: the shape of the result; sizes may be tensors that are known at run time only.
        mean: the mean, a number or a tensor that broadcasts to ``shape``.
        stddev: the standard deviation, likewise.
        dtype: float16, bfloat16, float32 or float64.
        seed: an integer: calls with one seed have a stream of their own. None for the shared stream, which
            ``df.random.set_seed`` starts.

    Returns:
        A tensor of shape ``shape`` and dtype ``dtype``.

    Raises:
        DTypeError: ``dtype`` is not a float dtype.
        InvalidArgumentError: a size is negative, or a parameter doesn't broadcast.

    >>> import dualflow as df
    >>> df.random.normal([2, 3], mean=10.0, stddev=0.1).shape
    (2, 3)
    """
    return draws.normal(stream(seed), shape, mean, stddev, dtype)


@entry
def truncated_normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers of the normal distribution that are within two standard deviations of the mean.

    Others are drawn again.

    Args:
        shape: the shape of the result; sizes may be tensors that are known at run time only.
        mean: the mean, a number or a tensor that broadcasts to ``shape``.
        stddev: the standard deviation before truncation, likewise.
        dtype: float16, bfloat16, float32 or float64.
        seed: an integer for a stream of its own; None for the shared stream.

    Returns:
        A tensor of shape ``shape`` and dtype ``dtype``.

    Raises:
        DTypeError: ``dtype`` is not a float dtype.
        InvalidArgumentError: a size is negative, or a parameter doesn't broadcast.

    >>> import dualflow as df
    >>> bool(df.reduce_all(df.abs(df.random.truncated_normal([100])) <= 2.0))
    True
    """
    return draws.truncated_normal(stream(seed), shape, mean, stddev, dtype)


@entry
def uniform(
    shape: ShapeLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Uniformly distributed numbers in ``[minval, maxval)``.

    Args:
        shape: the shape of the result; sizes may be tensors that are known at run time only.
        minval: the lower bound; a scalar for integers, otherwise it broadcasts to ``shape``.
        maxval: the upper bound, which is excluded, likewise; None for 1, which only floats have.
        dtype: a float or integer dtype.
        seed: an integer for a stream of its own; None for the shared stream.

    Returns:
        A tensor of shape ``shape`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: integers without ``maxval``, or with ``minval`` not below it; or a negative
            size.
        DTypeError: ``dtype`` is neither a float nor an integer dtype.

    >>> import dualflow as df
    >>> dice = df.random.uniform([100], 1, 7, df.int32)
    >>> bool(df.reduce_all((dice >= 1) & (dice <= 6)))
    True
    """
    return draws.uniform(stream(seed), shape, minval, maxval, dtype)


@entry
def shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """``value`` with the slices along its first axis in random order.

    Args:
        value: a tensor of one axis or more, of any dtype.
        seed: an integer for a stream of its own; None for the shared stream.

    Returns:
        A tensor with the shape and dtype of ``value``.

    Raises:
        InvalidArgumentError: ``value`` is a scalar.

    >>> import dualflow as df
    >>> sorted(df.random.shuffle([1, 2, 3]).numpy().tolist())
    [1, 2, 3]
    """
    return draws.shuffle(stream(seed), value)


@entry
def categorical(
    logits: TensorLike,
    num_samples: IntLike,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Class numbers drawn with the probabilities ``softmax(logits)`` of each row.

    They are the positions of the largest logits after Gumbel noise is added (the Gumbel-max trick).

    Args:
        logits: floats of shape ``(rows, classes)``: logarithms of probabilities, up to a constant.
        num_samples: the number of draws for each row.
        dtype: an integer dtype; None for int64.
        seed: an integer for a stream of its own; None for the shared stream.

    Returns:
        A tensor of shape ``(rows, num_samples)`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: ``logits`` doesn't hold floats in two axes, or has no classes.

    >>> import dualflow as df
    >>> df.random.categorical([[-100.0, 0.0], [0.0, -100.0]], 3).numpy().tolist()
    [[1, 1, 1], [0, 0, 0]]
    """
    return draws.categorical(stream(seed), logits, num_samples, dtype or int64)


@entry
def gamma(
    shape: ShapeLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers of gamma distributions, for each element of ``alpha``.

    They are positive: those that would round to 0 are the least normal number of the dtype.

    Args:
        shape: the shape of the draws for each element of ``alpha``.
        alpha: the shape parameters, floats of 0 or more.
        beta: the rates (inverse scales), which broadcast with ``alpha``; None for 1.
        dtype: the float dtype of ``alpha``, if that is a Python or NumPy value.
        seed: an integer for a stream of its own; None for the shared stream.

    Returns:
        A tensor of shape ``shape + alpha.shape`` and the dtype of ``alpha``.

    Raises:
        DTypeError: ``alpha`` doesn't hold floats.
        InvalidArgumentError: ``alpha`` is negative.

    >>> import dualflow as df
    >>> df.random.gamma([2], [0.5, 1.5, 3.0]).shape
    (2, 3)
    """
    return draws.gamma(stream(seed), shape, alpha, beta, dtype)


@entry
def poisson(
    shape: ShapeLike,
    lam: TensorLike,
    dtype: DTypeLike = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers of Poisson distributions, for each element of ``lam``.

    Args:
        shape: the shape of the draws for each element of ``lam``.
        lam: the means, numbers from 0 to 9.2e18.
        dtype: the dtype of the result, a float or integer dtype.
        seed: an integer for a stream of its own; None for the shared stream.

    Returns:
        A tensor of shape ``shape + lam.shape`` and dtype ``dtype``.

    Raises:
        DTypeError: ``lam`` doesn't hold real numbers.
        InvalidArgumentError: ``lam`` is negative, not a number, or too large.

    >>> import dualflow as df
    >>> df.random.poisson([2], [0.5, 1.5, 3.0]).shape
    (2, 3)
    """
    return draws.poisson(stream(seed), shape, lam, dtype)
