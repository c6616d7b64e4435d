"""Scaling values to a range or a norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arithmetic import maximum, minimum, multiply
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.choice import where
from dualflow.ops.comparison import isfinite
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import stack
from dualflow.ops.powers import sqrt
from dualflow.ops.static import several
from dualflow.ops.statistics import as_float, squared_magnitude

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Tensor:
    """``t`` with values below ``clip_value_min`` or above ``clip_value_max`` replaced by those.

    The gradient is that of ``t`` within the range, its ends included, and 0 outside.

    >>> import dualflow as df
    >>> df.clip_by_value([-3, 2, 9], 0, 5).numpy()
    array([0, 2, 5], dtype=int32)
    """
    return dispatch.current().composite(_clip, t, {"low": clip_value_min, "high": clip_value_max})


def _clip(t: Any, low: Any, high: Any) -> Any:
    engine = dispatch.current()
    return engine.binary(maximum.op, engine.binary(minimum.op, t, high), low)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """``t`` scaled down to the norm ``clip_norm`` where its norm over ``axes``, by default all, is larger.

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
    """The Euclidean norm of all elements of all tensors of ``t_list``; None entries are left out.

    Raises:
        InvalidArgumentError: no tensors.
    """
    halves = [l2_loss(as_float(t)) for t in several(t_list, "t_list") if t is not None]
    if not halves:
        raise InvalidArgumentError("global_norm takes one tensor or more, but every entry is None.")
    return sqrt(reduce_sum(stack(halves)) * 2)


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Tensor | None], Tensor]:
    """The tensors of ``t_list`` scaled together so that their global norm is at most ``clip_norm``.

    Args:
        t_list: tensors; None entries stay None.
        clip_norm: the largest norm.
        use_norm: the global norm, if it is known.
        name: ignored; as in TensorFlow.

    Returns:
        The scaled tensors and the norm they had; nan where that norm is not finite.
    """
    t_list = list(several(t_list, "t_list"))
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    scale = where(isfinite(norm), clip_norm / maximum(norm, clip_norm), float("nan"))
    return [None if t is None else multiply(t, scale) for t in t_list], norm


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of squares: ``sum(abs(t) ** 2) / 2``."""
    return reduce_sum(squared_magnitude(convert_to_tensor(t))) / 2
