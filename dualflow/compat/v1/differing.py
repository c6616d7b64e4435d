"""Functions that TensorFlow 1 had otherwise, or that version 2 has no more."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import float32, float64, int32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.nn import dropout as dropped_at_rate
from dualflow.ops.arithmetic import divide, floordiv
from dualflow.ops.choice import where
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.forms import Opaque
from dualflow.ops.random import Source
from dualflow.ops.record import Effect, Op, register
from dualflow.random import poisson as poisson_of_shape
from dualflow.random import stream


def div(x: Any, y: Any, name: str | None = None) -> Any:
    """``x / y``, which for integers is rounded down, as Python 2's.

    >>> from dualflow.compat import v1
    >>> int(v1.div(7, 2)), float(v1.div(7.0, 2.0))
    (3, 3.5)
    """
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    whole = not (x.dtype.is_inexact or y.dtype.is_inexact)
    return floordiv(x, y) if whole else divide(x, y)


def to_float(x: Any, name: str | None = "ToFloat") -> Any:
    """``x`` as float32.

    >>> from dualflow.compat import v1
    >>> v1.to_float([1, 2]).numpy().tolist()
    [1.0, 2.0]
    """
    return cast(x, float32)


def to_double(x: Any, name: str | None = "ToDouble") -> Any:
    """``x`` as float64.

    >>> from dualflow.compat import v1
    >>> v1.to_double(1).dtype
    dualflow.float64
    """
    return cast(x, float64)


def to_int32(x: Any, name: str | None = "ToInt32") -> Any:
    """``x`` as int32, cut towards zero.

    >>> from dualflow.compat import v1
    >>> int(v1.to_int32(2.7))
    2
    """
    return cast(x, int32)


def to_int64(x: Any, name: str | None = "ToInt64") -> Any:
    """``x`` as int64, cut towards zero.

    >>> from dualflow.compat import v1
    >>> v1.to_int64(2.7).dtype
    dualflow.int64
    """
    return cast(x, int64)


def poisson(lam: Any, shape: Any, dtype: Any = float32, seed: int | None = None, name: Any = None) -> Any:
    """Poisson numbers of mean ``lam``, of shape ``shape + lam.shape``; version 2 asks for the shape first.

    >>> from dualflow.compat import v1
    >>> v1.random.poisson(3.0, [2, 2]).shape
    (2, 2)
    """
    return poisson_of_shape(shape, lam, dtype, seed)


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Any:
    """``x`` with each element kept at a chance of ``keep_prob`` and divided by it, else 0.

    Args:
        x: floats of any shape, in a graph also of open sizes.
        keep_prob: the chance to keep an element, in (0, 1]; or else
        rate: the chance to drop it, in [0, 1).
        noise_shape: the shape of the draws, which broadcast to ``x``; by default that of ``x``.
        seed: a stream of draws of its own.
        name: of the result, in a graph.

    Raises:
        InvalidArgumentError: neither or both of ``keep_prob`` and ``rate``, or one out of its range.
        DTypeError: ``x`` is not of floats.

    >>> from dualflow.compat import v1
    >>> float(v1.reduce_max(v1.nn.dropout(v1.ones([1000]), keep_prob=0.25)))
    4.0
    """
    if (keep_prob is None) == (rate is None):
        raise InvalidArgumentError("dropout takes either keep_prob or rate, the chance to keep or to drop.")
    dropped = 1 - keep_prob if rate is None else rate
    x = convert_to_tensor(x)
    if noise_shape is not None or x.shape.is_static or not x.dtype.is_floating:
        return dropped_at_rate(x, dropped, noise_shape, seed)
    drawn = dispatch.current().apply(_UNIFORM_LIKE, (x,), {"generator": stream(seed)})
    return where(drawn >= dropped, x / (1 - dropped), 0)


def _draw_like(x: np.ndarray[Any, Any], generator: Source) -> Any:
    width = np.float64 if x.dtype.itemsize == 8 else np.float32
    return np.asarray(generator.philox.random(size=x.shape, dtype=width), x.dtype)


_UNIFORM_LIKE: Final = register(
    Op(
        name="random_uniform_like",
        doc="""Numbers of equal chance in [0, 1), as many as ``x`` has elements when it runs.""",
        infer=lambda x, generator: TensorSpec.of(x.shape, x.dtype),
        kernel=_draw_like,
        form=Opaque("random numbers come from NumPy's generators"),
        effect=Effect.RANDOM,
    )
)
