"""Dropout: elements that are 0 by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.choice import where
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.random_numbers.draws import uniform
from dualflow.ops.random_numbers.streams import stream
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
        noise_shape: the shape of the draws, which broadcast to ``x``; by default that of ``x``.
        seed: a stream of draws of its own, as in :func:`dualflow.random.uniform`.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: ``rate`` is not in [0, 1).
        DTypeError: ``x`` is not of floats.

    >>> import dualflow as df
    >>> float(df.reduce_max(df.nn.dropout(df.ones([1000]), rate=0.75)))
    4.0
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise DTypeError(f"dropout takes floats, not {x.dtype.name}; convert the input with df.cast.")
    check_is_number(rate)
    known = known_value(rate)
    if known is not None and not 0 <= known < 1:
        raise InvalidArgumentError(f"dropout's rate is in [0, 1), not {rate}.")
    if known is not None and known == 0:
        return x
    drawn = uniform(stream(seed), x.shape if noise_shape is None else noise_shape, dtype=x.dtype)
    return where(drawn >= rate, x / (1 - rate), 0)
