"""Dropout: elements that are 0 by chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.measuring import sizes_of
from dualflow.ops.random_numbers.draws import uniform
from dualflow.ops.random_numbers.stateless import stateless_uniform
from dualflow.ops.random_numbers.streams import stream
from dualflow.ops.selection import where
from dualflow.ops.static import known_value, shape_of

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def check_is_number(rate: Any) -> None:
    """Refuse a rate of dropout that is not one number."""
    if shape_of(rate):
        raise InvalidArgumentError(
            f"dropout's rate is one number, not of shape {shape_of(rate)}; give a scalar."
        )


def dropout(
    x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """``x`` with each element 0 at a chance of ``rate``, the others divided by ``1 - rate`` to keep the mean.

    Args:
        x: floats of any shape.
        rate: the chance, in [0, 1).
        noise_shape: the shape of the draws, which broadcast to ``x``; by default, or for None, its sizes.
        seed: a stream of draws of its own, as in :func:`dualflow.random.uniform`.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: ``rate`` is not in [0, 1).
        DTypeError: ``x`` is not of floats.

    >>> import dualflow as df
    >>> float(df.reduce_max(df.nn.dropout(df.ones([1000]), rate=0.75)))
    4.0
    """
    return _dropped(x, rate, noise_shape, lambda shape, dtype: uniform(stream(seed), shape, dtype=dtype))


def stateless_dropout(
    x: Any,
    rate: Any,
    seed: Any,
    rng_alg: Any = "auto_select",
    noise_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """:func:`dropout` that the two integers ``seed`` alone decide: the same elements each time.

    ``rng_alg`` is as in :func:`dualflow.random.stateless_uniform`.

    >>> import dualflow as df
    >>> f = lambda: df.nn.experimental.stateless_dropout(df.ones([8]), 0.5, seed=[1, 2])
    >>> bool(df.reduce_all(f() == f()))
    True
    """
    algorithm = "auto_select" if rng_alg is None else rng_alg

    def draw(shape: Any, dtype: Any) -> Tensor:
        return stateless_uniform(shape, seed, dtype=dtype, alg=algorithm)

    return _dropped(x, rate, noise_shape, draw)


def general_dropout(
    x: Any,
    rate: Any,
    uniform_sampler: Callable[..., Any],
    noise_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """:func:`dropout` by numbers that ``uniform_sampler(shape, dtype)`` returns: those below ``rate`` drop.

    >>> import dualflow as df
    >>> draws = lambda shape, dtype: df.constant([0.1, 0.6], dtype)
    >>> df.nn.experimental.general_dropout([1.0, 1.0], 0.5, draws).numpy().tolist()
    [0.0, 2.0]
    """
    return _dropped(x, rate, noise_shape, lambda shape, dtype: uniform_sampler(shape=shape, dtype=dtype))


def _dropped(x: Any, rate: Any, noise_shape: Any, draw: Callable[[Any, Any], Any]) -> Any:
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise DTypeError(f"dropout takes floats, not {x.dtype.name}; convert the input with df.cast.")
    check_is_number(rate)
    known = known_value(rate)
    if known is not None and not 0 <= known < 1:
        raise InvalidArgumentError(f"dropout's rate is in [0, 1), not {rate}.")
    if known is not None and known == 0:
        return x
    drawn = draw(_noise_shape(x, noise_shape), x.dtype)
    return where(drawn >= rate, x / (1 - rate), 0)


def _noise_shape(x: Any, noise_shape: Any) -> Any:
    """The shape of the draws, where None is the size of ``x``."""
    own = [sizes_of(x)[a] if d is None else d for a, d in enumerate(x.shape)]
    if noise_shape is None:
        return own
    if isinstance(noise_shape, list | tuple) and len(noise_shape) == len(own):
        return [d if n is None else n for n, d in zip(noise_shape, own, strict=True)]
    return noise_shape
