"""Activations by Keras's names and arguments, as compositions of this family's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import abs, maximum, minimum, sign
from dualflow.ops.choice import masked, where
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.exponential import exp, sigmoid, softplus
from dualflow.ops.joining import split
from dualflow.ops.neural import activations
from dualflow.ops.powers import sqrt
from dualflow.ops.trigonometric import tanh

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


@entry
def linear(x: Any) -> Tensor:
    """``x``, as a tensor."""
    return convert_to_tensor(x)


@entry
def relu(
    x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Tensor:
    """``x`` from ``threshold`` on, ``negative_slope * (x - threshold)`` below it; at most ``max_value``.

    >>> import dualflow as df
    >>> df.keras.activations.relu([-2.0, 0.5, 9.0], negative_slope=0.1, max_value=6.0).numpy()
    array([-0.2,  0.5,  6. ], dtype=float32)
    """
    x = convert_to_tensor(x)
    if threshold == 0.0:
        found = activations.relu(x) if not negative_slope else where(x > 0, x, negative_slope * x)
    else:
        found = where(x >= threshold, x, negative_slope * (x - threshold))
    return found if max_value is None else minimum(found, max_value)


@entry
def leaky_relu(x: Any, negative_slope: float = 0.2) -> Tensor:
    """``x`` where it is positive, ``negative_slope * x`` elsewhere."""
    return activations.leaky_relu(x, negative_slope)


@entry
def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """``x`` where it is not negative, ``alpha * (exp(x) - 1)`` elsewhere."""
    return activations.elu(x, alpha=alpha)


@entry
def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """``x`` where it is not negative, ``alpha * (exp(x / alpha) - 1)`` elsewhere (Barron, 2017)."""
    x = convert_to_tensor(x)
    return maximum(x, 0) + alpha * activations.elu(minimum(x, 0) / alpha)


@entry
def mish(x: Any) -> Tensor:
    """``x * tanh(softplus(x))`` (Misra, 2019)."""
    x = convert_to_tensor(x)
    return x * tanh(softplus(x))


@entry
def exponential(x: Any) -> Tensor:
    """``exp(x)``."""
    return exp(x)


@entry
def hard_sigmoid(x: Any) -> Tensor:
    """``x / 6 + 1 / 2`` kept between 0 and 1: a piecewise linear :func:`sigmoid`.

    >>> import dualflow as df
    >>> df.keras.activations.hard_sigmoid([-4.0, 0.0, 1.5]).numpy()
    array([0.  , 0.5 , 0.75], dtype=float32)
    """
    return activations.relu6(convert_to_tensor(x) + 3.0) / 6.0


@entry
def hard_silu(x: Any) -> Tensor:
    """``x * hard_sigmoid(x)``, also called hard swish (Howard et al., 2019)."""
    x = convert_to_tensor(x)
    return x * hard_sigmoid(x)


@entry
def hard_tanh(x: Any) -> Tensor:
    """``x`` kept between -1 and 1."""
    return maximum(minimum(convert_to_tensor(x), 1.0), -1.0)


@entry
def tanh_shrink(x: Any) -> Tensor:
    """``x - tanh(x)``."""
    x = convert_to_tensor(x)
    return x - tanh(x)


@entry
def soft_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """``x`` moved towards 0 by ``threshold``, and 0 where it is nearer."""
    x = convert_to_tensor(x)
    return sign(x) * maximum(abs(x) - threshold, 0)


@entry
def hard_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """``x``, and 0 where it is within ``threshold`` of 0."""
    x = convert_to_tensor(x)
    return masked(abs(x) > threshold, x)


@entry
def threshold(x: Any, threshold: float, default_value: float) -> Tensor:
    """``x`` where it is above ``threshold``, ``default_value`` elsewhere."""
    x = convert_to_tensor(x)
    return where(x > threshold, x, default_value)


@entry
def squareplus(x: Any, b: float = 4.0) -> Tensor:
    """``(x + sqrt(x * x + b)) / 2`` (Barron, 2021)."""
    x = convert_to_tensor(x)
    return (x + sqrt(x * x + b)) / 2


@entry
def glu(x: Any, axis: int = -1) -> Tensor:
    """The first half of ``x`` along ``axis``, times the sigmoid of the second (Dauphin et al., 2017)."""
    value, gate = split(x, 2, axis)
    return value * sigmoid(gate)


@entry
def softmax(x: Any, axis: int = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``axis``, without overflow."""
    return activations.softmax(x, axis)


@entry
def log_softmax(x: Any, axis: int = -1) -> Tensor:
    """``log(softmax(x))`` along ``axis``, exact where the softmax is near 0."""
    return activations.log_softmax(x, axis)
