"""Scaling values to a range or a norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arithmetic import maximum, minimum, multiply
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import isfinite
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import stack
from dualflow.ops.powers import sqrt
from dualflow.ops.selection import where
from dualflow.ops.static import tensor_list
from dualflow.ops.statistics import as_float, squared_magnitude

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> Tensor:
    """``t`` with values below ``clip_value_min`` or above ``clip_value_max`` replaced by these bounds.

    The gradient is that of ``t`` between the bounds, these included, and 0 outside.

    Args:
        t: numbers of any shape.
        clip_value_min: the lower bound, a number or a tensor that broadcasts with ``t``.
        clip_value_max: the upper bound, likewise.

    Returns:
        A tensor of the broadcast shape with the common dtype of the inputs.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.
        DTypeError: an input holds strings.

    >>> import dualflow as df
    >>> df.clip_by_value([-3, 2, 9], 0, 5).numpy()
    array([0, 2, 5], dtype=int32)
    """
    return dispatch.current().composite(_clip, t, {"low": clip_value_min, "high": clip_value_max})


def _clip(t: Any, low: Any, high: Any) -> Any:
    engine = dispatch.current()
    return engine.binary(maximum.op, engine.binary(minimum.op, t, high), low)


def clip_by_norm(
    t: TensorLike, clip_norm: TensorLike, axes: AxisLike | None = None, name: str | None = None
) -> Tensor:
    """``t`` scaled down so that its Euclidean norm is at most ``clip_norm``.

    Args:
        t: numbers of any shape; integers become float32.
        clip_norm: the largest norm, a positive number.
        axes: the axes of the norm: an integer or a list; None for all axes.

    Returns:
        A tensor with the shape and dtype of ``t``; float32 for integers.

    Raises:
        InvalidArgumentError: an axis is out of range or occurs twice.

    >>> import dualflow as df
    >>> df.clip_by_norm([3.0, 4.0], 1.0).numpy()
    array([0.6, 0.8], dtype=float32)
    """
    x = as_float(t)
    total = reduce_sum(squared_magnitude(x), axes, keepdims=True)
    positive = total > 0
    length = where(positive, sqrt(where(positive, total, 1)), total)  # 0, or nan, which stays
    return x * clip_norm / maximum(length, clip_norm)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The Euclidean norm of all elements of the tensors in ``t_list``.

    Args:
        t_list: a list of tensors of any shapes; None entries are left out. Integers become float32.

    Returns:
        A scalar with the common dtype of the tensors.

    Raises:
        InvalidArgumentError: there are no tensors.
        DTypeError: ``t_list`` is not a list.

    >>> import dualflow as df
    >>> df.global_norm([[3.0], [[4.0, 0.0]]]).numpy()
    np.float32(5.0)
    """
    halves = [l2_loss(as_float(t)) for t in tensor_list(t_list, "t_list") if t is not None]
    if not halves:
        raise InvalidArgumentError("global_norm takes one tensor or more, but every entry is None.")
    return sqrt(reduce_sum(stack(halves)) * 2)


@overload
def clip_by_global_norm(
    t_list: Sequence[Tensor], clip_norm: TensorLike, use_norm: bool | None = None, name: str | None = None
) -> tuple[list[Tensor], Tensor]: ...
@overload
def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: TensorLike, use_norm: bool | None = None, name: str | None = None
) -> tuple[list[Tensor | None], Tensor]: ...
def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: TensorLike, use_norm: bool | None = None, name: str | None = None
) -> tuple[Any, Tensor]:
    """The tensors of ``t_list`` scaled by one factor so that their global norm is at most ``clip_norm``.

    Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks" (2013).

    Args:
        t_list: a list of tensors of any shapes; None entries stay None.
        clip_norm: the largest global norm, a positive number.
        use_norm: the global norm, if it is already computed; None to compute it.

    Returns:
        The list of scaled tensors, and the norm before scaling. Where that is not finite, the tensors are
        nan.

    Raises:
        InvalidArgumentError: there are no tensors, and ``use_norm`` is None.
        DTypeError: ``t_list`` is not a list.

    >>> import dualflow as df
    >>> scaled, norm = df.clip_by_global_norm([[3.0], [4.0]], 1.0)
    >>> [float(x[0]) for x in scaled], float(norm)
    ([0.6000000238418579, 0.800000011920929], 5.0)
    """
    t_list = list(tensor_list(t_list, "t_list"))
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    scale = where(isfinite(norm), clip_norm / maximum(norm, clip_norm), float("nan"))
    return [None if t is None else multiply(t, scale) for t in t_list], norm


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Half the sum of squares: ``sum(abs(t) ** 2) / 2``.

    Args:
        t: numbers of any shape.

    Returns:
        A scalar with the dtype of ``t``; that of the parts for complex numbers.

    Raises:
        DTypeError: ``t`` holds bools or strings.

    >>> import dualflow as df
    >>> df.nn.l2_loss([1.0, 3.0]).numpy()
    np.float32(5.0)
    """
    return reduce_sum(squared_magnitude(convert_to_tensor(t))) / 2
