"""Shape invariants: which shapes branches may return, and loops may carry, where sizes are dynamic."""

from __future__ import annotations

from typing import Any

from dualflow.core.dispatch import AbstractComposite, AbstractTensor
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape, as_shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import flatten
from dualflow.function.control.tensor_array import TensorArray
from dualflow.function.errors import here


def may_merge(a: Shape, b: Shape) -> bool:
    """Whether two branches may return tensors of these shapes as one result.

    The ranks must be equal. A size in which the branches differ is dynamic in the result.
    """
    return len(a) == len(b)


def matches_invariant(before: Shape, after: Shape) -> bool:
    """Whether a value carried with the shape ``before`` may have the shape ``after`` later on."""
    return len(before) == len(after) and all(a is None or a == b for a, b in zip(before, after, strict=True))


def invariant_specs(loop_vars: Any, invariants: Any) -> list[TensorSpec]:
    """The specs that the loop variables have in all iterations.

    Args:
        loop_vars: a structure of tensors.
        invariants: shapes or specs in this structure, with None for a constant shape; None if all shapes are
            constant.

    Raises:
        InvalidArgumentError: the structures differ, or a tensor does not have the shape of its invariant.
    """
    specs: list[TensorSpec] = []
    _collect(loop_vars, invariants, specs)
    return specs


def _collect(value: Any, invariant: Any, specs: list[TensorSpec]) -> None:
    if invariant is None or is_array_invariant(value, invariant):
        specs += [TensorSpec.of(x.shape, x.dtype) for x in flatten(value)[0]]
    elif isinstance(value, AbstractTensor):
        specs.append(_spec(value, invariant))
    elif isinstance(value, AbstractComposite):
        specs += [_spec(*pair) for pair in composite_invariants(value, invariant)]
    elif isinstance(value, dict) and isinstance(invariant, dict) and value.keys() == invariant.keys():
        for key in sorted(value):
            _collect(value[key], invariant[key], specs)
    elif isinstance(value, list | tuple) and _is_listed(invariant) and len(value) == len(invariant):
        for part, shape in zip(value, invariant, strict=True):
            _collect(part, shape, specs)
    else:
        raise InvalidArgumentError(
            f"shape_invariants must have the structure of the loop variables, {value!r}, not that of "
            f"{invariant!r}; give a shape for each of them.{here()}"
        )


def is_array_invariant(value: Any, invariant: Any) -> bool:
    """Whether ``value`` is a TensorArray, of which the shape of a scalar and an unknown rank are ignored."""
    return isinstance(value, TensorArray) and as_shape(invariant) in (UNKNOWN_RANK, Shape(()))


def composite_invariants(x: AbstractComposite, invariant: Any) -> list[tuple[Any, TensorSpec]]:
    """Pairs of a tensor of a composite and its spec in all iterations, for a shape or spec of the composite.

    Raises:
        InvalidArgumentError: the composite does not have this shape, or its class has no shape invariants.
    """
    shape = as_shape(getattr(invariant, "shape", invariant))
    specs = x.__invariant__(shape)
    if specs is None:
        raise InvalidArgumentError(
            f"A loop variable is {x!r}, for which {shape} is no shape invariant; give its shape, with None "
            f"for the sizes that iterations change.{here()}"
        )
    return list(zip(flatten(x)[0], specs, strict=True))


def _is_listed(invariant: Any) -> bool:
    return isinstance(invariant, list | tuple) and not isinstance(invariant, Shape)


def _spec(x: Any, invariant: Any) -> TensorSpec:
    shape = as_shape(invariant.shape if isinstance(invariant, TensorSpec) else invariant)
    if shape is UNKNOWN_RANK:
        shape = Shape([None] * len(x.shape))
    if not matches_invariant(shape, x.shape):
        raise InvalidArgumentError(
            f"A loop variable has shape {x.shape}, which does not match its invariant, {shape}; use "
            f"None for the sizes that iterations change.{here()}"
        )
    return TensorSpec.of(shape, x.dtype)
