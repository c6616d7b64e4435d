"""Functions that TensorFlow 1 had otherwise, or that version 2 has no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, float32, float64, int32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.function.symbol import Symbol
from dualflow.nn import dropout as dropped_at_rate
from dualflow.ops.arithmetic import divide, floordiv
from dualflow.ops.choice import where
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like
from dualflow.ops.creation import ones as ones_of_sizes
from dualflow.ops.creation import zeros as zeros_of_sizes
from dualflow.ops.forms import Opaque
from dualflow.ops.random import Source, check_is_number
from dualflow.ops.record import Effect, Op, register
from dualflow.ops.shapes import SHAPE
from dualflow.random import normal, stream, uniform
from dualflow.random import poisson as poisson_of_shape


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
    check_is_number(dropped)
    x = convert_to_tensor(x)
    if noise_shape is not None or x.shape.is_static or not x.dtype.is_floating:
        return dropped_at_rate(x, dropped, noise_shape, seed)
    return where(_drawn(_UNIFORM_LIKE, x, x.dtype, seed) >= dropped, x / (1 - dropped), 0)


# Of the sizes of another tensor, which only a run may tell: shape=shape(x)


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Normal numbers, as :func:`dualflow.random.normal`; ``shape`` may be that of a tensor of open sizes.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     x = v1.placeholder(v1.float32, [None, 2])
    ...     print(session.run(v1.random_normal(v1.shape(x)), {x: [[1.0, 2.0]]}).shape)
    (1, 2)
    """
    x, wanted = _sized(shape), as_dtype(dtype)
    if x is None or not wanted.is_floating:
        return normal(shape, mean, stddev, dtype, seed)
    return _drawn(_NORMAL_LIKE, x, wanted, seed) * stddev + mean


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Numbers of equal chance, as :func:`dualflow.random.uniform`; see :func:`random_normal` for ``shape``.

    >>> from dualflow.compat import v1
    >>> v1.random_uniform([2, 3]).shape
    (2, 3)
    """
    x, wanted = _sized(shape), as_dtype(dtype)
    if x is None or not wanted.is_floating:
        return uniform(shape, minval, maxval, dtype, seed)
    return _drawn(_UNIFORM_LIKE, x, wanted, seed) * ((1 if maxval is None else maxval) - minval) + minval


def zeros(shape: Any, dtype: Any = float32, name: str | None = None) -> Any:
    """Zeros, as :func:`dualflow.zeros`; see :func:`random_normal` for ``shape``.

    >>> from dualflow.compat import v1
    >>> v1.zeros([2]).numpy().tolist()
    [0.0, 0.0]
    """
    x = _sized(shape)
    return zeros_of_sizes(shape, dtype) if x is None else zeros_like(x, dtype)


def ones(shape: Any, dtype: Any = float32, name: str | None = None) -> Any:
    """Ones, as :func:`dualflow.ones`; see :func:`random_normal` for ``shape``.

    >>> from dualflow.compat import v1
    >>> v1.ones([2]).numpy().tolist()
    [1.0, 1.0]
    """
    x = _sized(shape)
    return ones_of_sizes(shape, dtype) if x is None else ones_like(x, dtype)


def _sized(shape: Any) -> Symbol | None:
    """The tensor of open sizes whose ``shape(x)`` this is; None for any other shape."""
    node = shape._value.node if isinstance(shape, Symbol) else None
    return shape._tracer.symbol(node.inputs[0]) if node is not None and node.op is SHAPE else None


def _drawn(op: Op, x: Any, dtype: DType, seed: int | None) -> Any:
    return dispatch.current().apply(op, (x,), {"dtype": dtype, "generator": stream(seed)})


def _like(name: str, doc: str, draw: Callable[[np.random.Generator], Callable[..., Any]]) -> Op:
    """An op that draws floats of the sizes of its input."""

    def kernel(x: np.ndarray[Any, Any], dtype: DType, generator: Source) -> Any:
        width = np.float64 if dtype.size == 8 else np.float32
        return np.asarray(draw(generator.philox)(size=x.shape, dtype=width), dtype.dtype)

    return register(
        Op(
            name=name,
            doc=doc,
            infer=lambda x, dtype, generator: TensorSpec.of(x.shape, dtype),
            kernel=kernel,
            form=Opaque("random numbers come from NumPy's generators"),
            effect=Effect.RANDOM,
        )
    )


_UNIFORM_LIKE: Final = _like(
    "random_uniform_like",
    """Numbers of equal chance in [0, 1), of the sizes that ``x`` has when it runs.""",
    lambda philox: philox.random,
)
_NORMAL_LIKE: Final = _like(
    "random_normal_like",
    """Numbers of mean 0 and variance 1, of the sizes that ``x`` has when it runs.""",
    lambda philox: philox.standard_normal,
)
