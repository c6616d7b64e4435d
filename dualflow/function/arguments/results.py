"""Puts the tensors of a call's result into the structure that the traced function returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.tree import Structure, rebuilder


class Packer:
    """Puts tensors into the structure of the result.

    Attributes:
        form: ``tensor``, ``tuple`` (of tensors) or ``none`` if machine code can create the result itself,
            else ``packed``, if only :attr:`make` can.
        make: returns the result for a sequence of tensors.
    """

    __slots__ = ("form", "make")

    def __init__(self, structure: Structure) -> None:
        self.form = _form(structure)
        self.make = rebuilder(structure)

    def __call__(self, tensors: Sequence[Any]) -> Any:
        return self.make(tensors)


def _form(structure: Structure) -> str:
    if structure.kind in (None, type(None)):
        return "tensor" if structure.kind is None else "none"
    flat = all(child.kind is None for child in structure.children)
    return "tuple" if flat and structure.kind is tuple else "packed"
