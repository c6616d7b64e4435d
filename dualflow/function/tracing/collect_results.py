"""Converts the results of a traced function to values of its graph."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError
from dualflow.core.shape import Shape
from dualflow.core.tree import Structure, flatten
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.ir import Value

_VALUES: Final = (bool, int, float, complex, str, bytes, np.generic, np.ndarray, Shape)


def collect(result: Any, tracer: Tracer) -> tuple[Structure, list[Value]]:
    """The structure of a traced function's result, and its leaves as values of the graph.

    Numbers, strings and arrays become constants, variables are read; ``None`` is part of the structure.

    Raises:
        DTypeError: a leaf of another type.
    """
    leaves, structure = flatten(result)
    return structure, [_value(leaf, tracer) for leaf in leaves]


def _value(leaf: Any, tracer: Tracer) -> Value:
    if isinstance(leaf, AbstractTensor):
        return tracer.lift(leaf)._value
    if isinstance(leaf, AbstractVariable):
        return tracer.read(leaf)._value
    if isinstance(leaf, _VALUES):
        return tracer.constant(as_array(leaf))._value
    raise DTypeError(
        f"A function that is traced returns tensors, numbers, strings, arrays, None, or structures of them; "
        f"{tracer.name!r} returned an object of type {type(leaf).__name__}. Return the tensors in it."
    )
