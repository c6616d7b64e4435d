"""Dropout: random elements set to 0."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.random_numbers.draws import uniform
from dualflow.ops.random_numbers.stateless import stateless_uniform
from dualflow.ops.random_numbers.streams import stream
from dualflow.ops.selection import where
from dualflow.ops.static import shape_of, static_value
from dualflow.ops.tensor_sizes import axis_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import ShapeLike, TensorLike
    from dualflow.ops.random_numbers.states import AlgorithmLike
    from dualflow.ops.tensor import Tensor


def check_is_number(rate: TensorLike) -> None:
    """Raise an error unless a dropout rate is a scalar."""
    if shape_of(rate):
        raise InvalidArgumentError(
            f"dropout's rate is one number, not of shape {shape_of(rate)}; give a scalar."
        )


def dropout(
    x: TensorLike,
    rate: TensorLike,
    noise_shape: ShapeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """``x`` with each element set to 0 with probability ``rate``, the others divided by ``1 - rate``.

    So the mean stays. Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting"
    (2014).

    Args:
        x: floats of any shape.
        rate: the probability, a scalar in [0, 1); a tensor may be 1, which sets all elements to 0.
        noise_shape: the shape of the draws, which broadcasts to that of ``x``; None, also for an entry, for
            its sizes.
        seed: an integer for a stream of its own, as in :func:`dualflow.random.uniform`; None for the shared
            stream.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: ``rate`` is not a scalar in [0, 1).
        DTypeError: ``x`` doesn't hold floats.

    >>> import dualflow as df
    >>> float(df.reduce_max(df.nn.dropout(df.ones([1000]), rate=0.75)))
    4.0
    """
    return _drop(x, rate, noise_shape, lambda shape, dtype: uniform(stream(seed), shape, dtype=dtype))


def stateless_dropout(
    x: TensorLike,
    rate: TensorLike,
    seed: TensorLike,
    rng_alg: AlgorithmLike | None = "auto_select",
    noise_shape: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """:func:`dropout` whose elements depend on ``seed`` alone: the same at each call.

    Args:
        x: floats of any shape.
        rate: the probability, a scalar in [0, 1).
        seed: two integers.
        rng_alg: the generator, as in :func:`dualflow.random.stateless_uniform`.
        noise_shape: the shape of the draws, which broadcasts to that of ``x``; None, also for an entry, for
            its sizes.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: ``rate`` is not a scalar in [0, 1), ``seed`` not two integers, or ``rng_alg`` is
            unknown.
        DTypeError: ``x`` doesn't hold floats.

    >>> import dualflow as df
    >>> f = lambda: df.nn.experimental.stateless_dropout(df.ones([8]), 0.5, seed=[1, 2])
    >>> bool(df.reduce_all(f() == f()))
    True
    """
    algorithm = "auto_select" if rng_alg is None else rng_alg

    def draw(shape: Any, dtype: Any) -> Tensor:
        return stateless_uniform(shape, seed, dtype=dtype, alg=algorithm)

    return _drop(x, rate, noise_shape, draw)


def general_dropout(
    x: TensorLike,
    rate: TensorLike,
    uniform_sampler: Callable[..., Any],
    noise_shape: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """:func:`dropout` with numbers from ``uniform_sampler``: elements with one below ``rate`` become 0.

    Args:
        x: floats of any shape.
        rate: the probability, a scalar in [0, 1).
        uniform_sampler: a function ``uniform_sampler(shape=..., dtype=...)`` that returns numbers in [0, 1).
        noise_shape: the shape of the draws, which broadcasts to that of ``x``; None, also for an entry, for
            its sizes.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: ``rate`` is not a scalar in [0, 1).
        DTypeError: ``x`` doesn't hold floats.

    >>> import dualflow as df
    >>> draws = lambda shape, dtype: df.constant([0.1, 0.6], dtype)
    >>> df.nn.experimental.general_dropout([1.0, 1.0], 0.5, draws).numpy().tolist()
    [0.0, 2.0]
    """
    return _drop(x, rate, noise_shape, lambda shape, dtype: uniform_sampler(shape=shape, dtype=dtype))


def _drop(x: Any, rate: Any, noise_shape: Any, draw: Callable[[Any, Any], Any]) -> Any:
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise DTypeError(f"dropout takes floats, not {x.dtype.name}; convert the input with df.cast.")
    check_is_number(rate)
    static_rate = static_value(rate)
    if static_rate is not None and not _is_rate(static_rate, is_number=isinstance(rate, Real)):
        raise InvalidArgumentError(f"dropout's rate is in [0, 1), not {rate}.")
    if static_rate is not None and static_rate == 0:
        return x
    drawn = draw(_noise_shape(x, noise_shape), x.dtype)
    return where(drawn >= rate, x / (1 - rate), 0)


def _is_rate(value: Any, *, is_number: bool) -> bool:
    """Whether a static value is a rate. A tensor may be 1, as in TensorFlow, where schedules end."""
    return bool(0 <= value < 1 or (value == 1 and not is_number))


def _noise_shape(x: Any, noise_shape: Any) -> Any:
    """The shape of the draws, where None is the size of ``x``."""
    sizes = axis_sizes(x)
    if noise_shape is None:
        return sizes
    if isinstance(noise_shape, list | tuple) and len(noise_shape) == len(sizes):
        return [d if n is None else n for n, d in zip(noise_shape, sizes, strict=True)]
    return noise_shape
