"""What a traced function returns: tensors, in the structure in which it returned them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.ir import Value

_NUMBERS = (bool, int, float, complex, np.generic, np.ndarray)


def collect(result: Any, tracer: Tracer) -> tuple[Structure, list[Value]]:
    """The structure of what a traced function returned, and its leaves as values of the graph.

    Python numbers and arrays become tensors, a variable gives its value, ``None`` stays.

    Raises:
        DTypeError: a leaf of another type.
    """
    leaves, structure = flatten(result)
    return structure, [_value(leaf, tracer) for leaf in leaves]


def _value(leaf: Any, tracer: Tracer) -> Value:
    if isinstance(leaf, AbstractTensor):
        return tracer.adopt(leaf)._value
    if isinstance(leaf, AbstractVariable):
        return tracer.read(leaf)._value
    if isinstance(leaf, _NUMBERS):
        return tracer.constant(as_array(leaf))._value
    raise DTypeError(
        f"A function that is traced returns tensors, numbers, arrays, None, or structures of them; "
        f"{tracer.name!r} returned an object of type {type(leaf).__name__}. Return what tensors it holds."
    )


class Packer:
    """Puts tensors into one structure, whose common forms take no walk."""

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
