"""Activation functions of neural networks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import float32
from dualflow.core.errors import DTypeError
from dualflow.ops.arithmetic import abs, minimum, negative, square
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import logical_and
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.elementwise import as_real_float, elementwise, real
from dualflow.ops.exponential import exp, expm1, sigmoid
from dualflow.ops.joining import concat
from dualflow.ops.powers import log
from dualflow.ops.reduction import reduce_max
from dualflow.ops.samples import Domain
from dualflow.ops.selection import masked, where
from dualflow.ops.special import ndtr
from dualflow.ops.trigonometric import tanh

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor

relu = elementwise(
    "relu",
    """``x`` where it is positive, 0 elsewhere; nan stays. The slope at 0 is 0.""",
    example=("df.nn.relu([-3, 4])", "[0, 4]"),
    inputs="features",
    dtype=real,
    eager=lambda x: np.maximum(x, 0),
    code=lambda m, x: m.maximum(x, 0),
    vjp=lambda g, out, x: masked(out > 0, g),  # of out, so that x need not be kept
    samples=Domain(-5, 5, "fi", kinks=(0.0,)),
)

relu6 = elementwise(
    "relu6",
    """``x`` clipped to ``[0, 6]``; nan stays. The slope at 0 and at 6 is 0.""",
    example=("df.nn.relu6([-3, 4, 9])", "[0, 4, 6]"),
    inputs="features",
    dtype=real,
    eager=lambda x: np.minimum(np.maximum(x, 0), 6),
    code=lambda m, x: m.minimum(m.maximum(x, 0), 6),
    vjp=lambda g, out, x: masked(logical_and(x > 0, x < 6), g),
    samples=Domain(-5, 10, "fi", kinks=(0.0, 6.0)),
)


def _floating(features: Any, op: str) -> Any:
    x = convert_to_tensor(features)
    if not x.dtype.is_floating:
        raise DTypeError(f"{op} takes floats, not {x.dtype.name}; convert the input with df.cast.")
    return x


def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """``x`` where it is positive, ``alpha * x`` elsewhere; the slope at 0 is ``alpha``.

    Args:
        features: numbers of any shape; integers become float32.
        alpha: the slope for negative numbers.

    Returns:
        A tensor with the shape and dtype of ``features``; float32 for integers.

    Raises:
        DTypeError: ``features`` holds bools or complex numbers.

    >>> import dualflow as df
    >>> df.nn.leaky_relu([-10.0, 10.0]).numpy().tolist()
    [-2.0, 10.0]
    """
    x = convert_to_tensor(features)
    x = cast(x, float32) if x.dtype.is_integer else _floating(x, "leaky_relu")
    return dispatch.current().composite(_leaky_relu, x, {"alpha": alpha})


def _leaky_relu(x: Any, alpha: Any) -> Any:
    return where(x > 0, x, alpha * x)


def elu(features: TensorLike, name: str | None = None, *, alpha: float = 1.0) -> Tensor:
    """``x`` where it is not negative, ``alpha * (exp(x) - 1)`` elsewhere; the slope at 0 is 1.

    Clevert, Unterthiner and Hochreiter, "Fast and Accurate Deep Network Learning by Exponential Linear Units"
    (2016).

    Args:
        features: floats of any shape.
        alpha: the results for large negative numbers tend to ``-alpha``.

    Returns:
        A tensor with the shape and dtype of ``features``.

    Raises:
        DTypeError: ``features`` doesn't hold floats.

    >>> import dualflow as df
    >>> df.nn.elu([-1e9, 0.0, 2.0]).numpy().tolist()
    [-1.0, 0.0, 2.0]
    """
    return dispatch.current().composite(_elu, _floating(features, "elu"), {"alpha": alpha})


def _elu(x: Any, alpha: Any) -> Any:
    return where(x < 0, alpha * expm1(minimum(x, 0)), x)


# The fixed point of mean 0 and variance 1, after Klambauer et al., "Self-Normalizing Neural Networks" (2017).
_SELU_ALPHA: Final = 1.6732632423543772848170429916717
_SELU_SCALE: Final = 1.0507009873554804934193349852946


def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """The scaled exponential linear unit, whose outputs tend to mean 0 and variance 1.

    Klambauer et al., "Self-Normalizing Neural Networks" (2017). The slope at 0 is 1.0507.

    Args:
        features: floats of any shape.

    Returns:
        A tensor with the shape and dtype of ``features``.

    Raises:
        DTypeError: ``features`` doesn't hold floats.

    >>> import dualflow as df
    >>> df.nn.selu([0.0, 1.0]).numpy()
    array([0.       , 1.050701], dtype=float32)
    """
    return dispatch.current().composite(_selu, _floating(features, "selu"), {})


def _selu(x: Any) -> Any:
    return _SELU_SCALE * _elu(x, _SELU_ALPHA)


def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Tensor:
    """``x`` times the probability that a standard normal number is below ``x``.

    Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).

    Args:
        features: floats of any shape.
        approximate: whether to compute it from tanh, within 5e-4, instead of from the error function.

    Returns:
        A tensor with the shape and dtype of ``features``.

    Raises:
        DTypeError: ``features`` doesn't hold floats.

    >>> import dualflow as df
    >>> df.nn.gelu([-20.0, 0.0, 20.0]).numpy().tolist()
    [-0.0, 0.0, 20.0]
    """
    x = _floating(features, "gelu")
    return dispatch.current().composite(_gelu, x, {"approximate": approximate})


def _gelu(x: Any, approximate: bool) -> Any:
    if approximate:
        return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return x * ndtr(x)


def silu(features: TensorLike, beta: TensorLike = 1.0, name: str | None = None) -> Tensor:
    """``x * sigmoid(beta * x)``, also called swish.

    Elfwing, Uchibe and Doya, "Sigmoid-Weighted Linear Units" (2017); Ramachandran, Zoph and Le, "Searching
    for Activation Functions" (2017).

    Args:
        features: floats of any shape.
        beta: a number, or a tensor that broadcasts with ``features``.

    Returns:
        A tensor with the shape and dtype of ``features``.

    Raises:
        DTypeError: ``features`` doesn't hold floats.

    >>> import dualflow as df
    >>> df.nn.silu([0.0, 20.0]).numpy().tolist()
    [0.0, 20.0]
    """
    return dispatch.current().composite(_silu, _floating(features, "silu"), {"beta": beta})


def _silu(x: Any, beta: Any) -> Any:
    return x * sigmoid(x if type(beta) is float and beta == 1.0 else beta * x)


softsign = elementwise(
    "softsign",
    """``x / (1 + abs(x))``.""",
    example=("df.nn.softsign([-3.0, 0.0, 1.0])", "[-0.75, 0.0, 0.5]"),
    inputs="features",
    dtype=as_real_float,
    code=lambda m, x: x / (1 + m.abs(x)),
    vjp=lambda g, out, x: g / square(1 + abs(x)),  # one fraction, which is 0 and not nan at infinity
    samples=Domain(-5, 5, "fi"),
    cost=8,
)


def softmax(logits: TensorLike, axis: AxisLike | None = None, name: str | None = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis, without overflow: the maximum is subtracted first.

    Args:
        logits: floats of one axis or more.
        axis: the axis of the sum, or a list of axes; None for the last one.

    Returns:
        A tensor with the shape and dtype of ``logits``; the numbers along the axis add up to 1.

    Raises:
        DTypeError: ``logits`` doesn't hold floats.
        InvalidArgumentError: ``axis`` is out of range, or ``logits`` is a scalar.

    >>> import dualflow as df
    >>> df.nn.softmax([[0.0, 0.0], [1000.0, 0.0]]).numpy().tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    x = _floating(logits, "softmax")
    return dispatch.current().composite(_softmax, x, {"along": -1 if axis is None else axis})


def _softmax(x: Any, along: Any) -> Any:
    powers = exp(x - stop_gradient(reduce_max(x, along, keepdims=True)))
    return powers / reduce_sum(powers, along, keepdims=True)


def log_softmax(logits: TensorLike, axis: AxisLike | None = None, name: str | None = None) -> Tensor:
    """``log(softmax(x))`` along an axis, precise where the softmax is near 0.

    Args:
        logits: floats of one axis or more.
        axis: the axis of the sum, or a list of axes; None for the last one.

    Returns:
        A tensor with the shape and dtype of ``logits``.

    Raises:
        DTypeError: ``logits`` doesn't hold floats.
        InvalidArgumentError: ``axis`` is out of range, or ``logits`` is a scalar.

    >>> import dualflow as df
    >>> df.nn.log_softmax([1000.0, 0.0]).numpy().tolist()
    [0.0, -1000.0]
    """
    x = _floating(logits, "log_softmax")
    return dispatch.current().composite(_log_softmax, x, {"along": -1 if axis is None else axis})


def _log_softmax(x: Any, along: Any) -> Any:
    shifted = x - stop_gradient(reduce_max(x, along, keepdims=True))
    return shifted - log(reduce_sum(exp(shifted), along, keepdims=True))


def crelu(features: TensorLike, axis: int = -1, name: str | None = None) -> Tensor:
    """:func:`relu` of ``x`` and of ``-x``, joined along ``axis``.

    Shang et al., "Understanding and Improving Convolutional Neural Networks via Concatenated Rectified Linear
    Units" (2016).

    Args:
        features: numbers other than bools, of one axis or more.
        axis: the axis along which to join; the last by default.

    Returns:
        A tensor of the dtype of ``features``, of twice its size on ``axis``.

    Raises:
        DTypeError: ``features`` doesn't hold real numbers.
        InvalidArgumentError: ``axis`` is out of range.

    >>> import dualflow as df
    >>> df.nn.crelu([-1.0, 2.0]).numpy().tolist()
    [0.0, 2.0, 1.0, 0.0]
    """
    x = convert_to_tensor(features)
    return relu(concat([x, negative(x)], axis))
