"""A call's results: tensors, put into the structure that the traced function returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.tree import Structure, rebuilder


class Packer:
    """Puts tensors into the structure of the results.

    Attributes:
        form: ``tensor``, ``tuple`` (of tensors) or ``none`` where machine code can make the results itself,
            else ``packed``.
        make: what makes the results of a sequence of tensors.
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
