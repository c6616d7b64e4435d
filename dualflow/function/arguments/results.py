"""A call's results: tensors, put into the structure that the traced function returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.tree import Structure, unflatten


class Packer:
    """Puts tensors into the structure of the results; one tensor, a tuple and None take no walk over it."""

    __slots__ = ("_kind", "_structure")

    def __init__(self, structure: Structure) -> None:
        flat = all(child.kind is None for child in structure.children)
        self._structure = structure
        self._kind = structure.kind if flat and structure.kind in (None, tuple) else Structure

    @property
    def form(self) -> str:
        """``tensor``, ``tuple``, ``none``, or ``packed`` for what only a walk can build."""
        if self._kind in (None, tuple):
            return "tensor" if self._kind is None else "tuple"
        return "none" if self._structure.kind is type(None) else "packed"

    def __call__(self, tensors: Sequence[Any]) -> Any:
        if self._kind is None:
            return tensors[0]
        return tuple(tensors) if self._kind is tuple else unflatten(self._structure, tensors)
