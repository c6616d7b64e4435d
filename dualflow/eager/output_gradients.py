"""The cotangents from which a gradient starts: the user's output gradients, or ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dualflow.core.dtypes import float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.eager.differentiable_parts import differentiable_parts, flatten_differentiable
from dualflow.eager.engine import adapt_to_dtype
from dualflow.eager.tensor import EagerTensor
from dualflow.ops.cotangent_shapes import matched
from dualflow.ops.creation import convert_to_tensor, ones_like


def cotangents_of_targets(targets: Sequence[Any], output_gradients: Any) -> list[Any]:
    """The cotangent of each target: its output gradient, or ones."""
    if output_gradients is None:
        return [_ones(t) for t in targets]
    flat = _flat_cotangents(output_gradients)
    if len(flat) != len(targets):
        raise InvalidArgumentError(
            f"{len(targets)} targets need as many output_gradients, not {len(flat)}; give None for ones."
        )
    return [_ones(t) if g is None else _cotangent(g, t) for t, g in zip(targets, flat, strict=True)]


def _ones(target: Any) -> Any:
    """Ones like the target; for a scalar a cached tensor. No gradient flows through strings: numbers do."""
    if type(target) is EagerTensor and not target.ndim and target.dtype.computes:
        return adapt_to_dtype(1.0, target._array.dtype)
    return ones_like(target, float32 if target.dtype.is_string else None)


def _flat_cotangents(output_gradients: Any) -> list[Any]:
    if isinstance(output_gradients, list | tuple):
        return [part for x in output_gradients for part in differentiable_parts(x)]
    return flatten_differentiable(output_gradients)[0]


_SHAPES_DIFFER: Final = "output_gradients of shape {0} do not broadcast to their target's shape {1}."


def _cotangent(output_gradient: Any, target: Any) -> Any:
    """An output gradient as a tensor of the target's dtype and shape."""
    tensor = convert_to_tensor(output_gradient, dtype_hint=target.dtype)
    if tensor.dtype is not target.dtype and target.dtype.is_inexact:
        raise DTypeError(
            f"output_gradients of dtype {tensor.dtype.name} belong to a target of dtype {target.dtype.name}; "
            "cast them with df.cast."
        )
    return matched(tensor, target, _SHAPES_DIFFER, repeats=True)
