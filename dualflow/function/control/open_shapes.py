"""Shapes of what branches result in and loops carry, where sizes may differ from run to run."""

from __future__ import annotations

from typing import Any

from dualflow.core.dispatch import AbstractTensor
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape, as_shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import flatten
from dualflow.function.errors import here


def may_merge(a: Shape, b: Shape) -> bool:
    """Whether the results of two branches may have these shapes.

    They are of one rank: a size in which branches differ is known only at run time.
    """
    return len(a) == len(b)


def keeps(before: Shape, after: Shape) -> bool:
    """Whether what is carried in shape ``before``, whose open sizes may change, may get shape ``after``."""
    return len(before) == len(after) and all(a is None or a == b for a, b in zip(before, after, strict=True))


def invariant_specs(loop_vars: Any, invariants: Any) -> list[TensorSpec]:
    """What is known of the loop variables in all iterations.

    Args:
        loop_vars: a structure of tensors.
        invariants: shapes or specs in this structure, None for shapes that stay; or None for all of these.

    Raises:
        InvalidArgumentError: another structure, or a shape that a tensor does not have.
    """
    found: list[TensorSpec] = []
    _collect(loop_vars, invariants, found)
    return found


def _collect(value: Any, invariant: Any, found: list[TensorSpec]) -> None:
    if invariant is None:
        found += [TensorSpec.of(x.shape, x.dtype) for x in flatten(value)[0]]
    elif isinstance(value, AbstractTensor):
        found.append(_spec(value, invariant))
    elif isinstance(value, dict) and isinstance(invariant, dict) and value.keys() == invariant.keys():
        for key in sorted(value):
            _collect(value[key], invariant[key], found)
    elif isinstance(value, list | tuple) and _is_listed(invariant) and len(value) == len(invariant):
        for part, shape in zip(value, invariant, strict=True):
            _collect(part, shape, found)
    else:
        raise InvalidArgumentError(
            f"shape_invariants have the structure of the loop variables, {value!r}, not that of "
            f"{invariant!r}; give a shape for each of them.{here()}"
        )


def _is_listed(invariant: Any) -> bool:
    return isinstance(invariant, list | tuple) and not isinstance(invariant, Shape)


def _spec(x: Any, invariant: Any) -> TensorSpec:
    shape = as_shape(invariant.shape if isinstance(invariant, TensorSpec) else invariant)
    if shape is UNKNOWN_RANK:
        shape = Shape([None] * len(x.shape))
    if not keeps(shape, x.shape):
        raise InvalidArgumentError(
            f"A loop variable has shape {x.shape}, which is none of its invariant, {shape}; leave open the "
            f"sizes that iterations change, as None.{here()}"
        )
    return TensorSpec.of(shape, x.dtype)
