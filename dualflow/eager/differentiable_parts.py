"""The tensors and variables of targets and sources, to which gradients flow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dualflow.core import tree
from dualflow.core.dispatch import TENSORS, DifferentiableComposite
from dualflow.core.errors import DTypeError

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def flatten_differentiable(trees: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The differentiable tensors of a structure, and a function that builds the structure of gradients."""
    if isinstance(trees, TENSORS):
        return [trees], lambda gradients: gradients[0]
    if type(trees) is list and not [x for x in trees if not isinstance(x, TENSORS)]:
        return trees, list
    leaves, structure = tree.flatten(trees, _is_composite)
    if not [x for x in leaves if isinstance(x, DifferentiableComposite)]:
        return leaves, partial(tree.unflatten, structure)
    parts = [differentiable_parts(x) for x in leaves]

    def rebuild(gradients: list[Any]) -> Any:
        remaining = iter(gradients)
        of_parts = [[next(remaining) for _ in of_leaf] for of_leaf in parts]
        pairs = zip(leaves, of_parts, strict=True)
        rebuilt = [x.with_gradients(g) if _is_composite(x) else g[0] for x, g in pairs]
        return tree.unflatten(structure, rebuilt)

    return [part for of_leaf in parts for part in of_leaf], rebuild


def differentiable_parts(value: Any) -> list[Any]:
    """The tensors and variables of a composite to which gradients flow; another value itself."""
    return value.differentiable_parts() if _is_composite(value) else [value]


def only_differentiable(value: Any) -> Tensor:
    """The only tensor in :func:`differentiable_parts` of the target or source of a Jacobian.

    Raises:
        DTypeError: there are several.
    """
    parts = differentiable_parts(value)
    if len(parts) != 1:
        raise DTypeError(
            f"A Jacobian is of one tensor by another, and {value!r} consists of {len(parts)}; pass one of "
            "them."
        )
    tensor: Tensor = parts[0]
    return tensor


def _is_composite(value: Any) -> bool:
    return isinstance(value, DifferentiableComposite)
