"""What users give to the methods of datasets: counts, functions, structures beside those of elements."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dualflow.core.dispatch import AbstractTensor
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tree import Structure
from dualflow.data.functions import on_trial
from dualflow.data.stage import UNKNOWN
from dualflow.function.errors import here
from dualflow.ops.static import known_value


def whole_number(value: Any, what: str) -> int:
    """An integer of Python's, NumPy's or a tensor's.

    Raises:
        DTypeError: it is no integer.
        InvalidArgumentError: it is computed by a trace.
    """
    if isinstance(value, AbstractTensor):
        known = known_value(value)
        if known is None:
            return _symbolic(what)
        value = known
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise DTypeError(f"{what} is an integer, not {value!r}.{here()}") from None


def _symbolic(what: str) -> int:
    """What stands for a number that a trace computes, in a function that is only tried."""
    if on_trial():
        return 1
    raise InvalidArgumentError(
        f"{what} is a tensor that a traced function computes, and datasets are made of known numbers. Make "
        "the "
        f"dataset outside of the function.{here()}"
    )


def positive(value: Any, what: str) -> int:
    """An integer from 1 on."""
    found = whole_number(value, what)
    if found <= 0:
        raise InvalidArgumentError(f"{what} must be greater than zero, not {found}.{here()}")
    return found


def file_name(value: Any) -> str:
    """The name of a file: a string, a path, or a scalar tensor of a string."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    value = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    try:
        found = os.fspath(value)
    except TypeError:
        raise DTypeError(f"The name of a file is a string or a path, not {value!r}.{here()}") from None
    return found.decode() if isinstance(found, bytes) else str(found)


def buffer_size(value: Any) -> int:
    """The size of a shuffle's buffer, or ``UNKNOWN``."""
    found = whole_number(value, "buffer_size")
    if found <= 0 and found != UNKNOWN:
        raise InvalidArgumentError(
            f"buffer_size must be greater than zero or UNKNOWN_CARDINALITY, not {found}.{here()}"
        )
    return found


def callable_function(value: Any, what: str) -> Callable[..., Any]:
    """A function of elements."""
    if not callable(value):
        raise DTypeError(f"{what} must be a callable, not {value!r}.{here()}")
    function: Callable[..., Any] = value
    return function


def leaves_up_to(structure: Structure, value: Any, what: str) -> list[Any]:
    """The parts of ``value`` that stand where ``structure`` has leaves, whatever they are made of."""
    if structure.kind is None:
        return [value]
    if structure.keys and isinstance(value, Mapping) and set(value) == set(structure.keys):
        parts = [value[key] for key in structure.keys]
    elif isinstance(value, list | tuple) and len(value) == len(structure.children):
        parts = list(value)
    else:
        raise DTypeError(f"{what} has another structure than the elements: {value!r}.{here()}")
    return [
        leaf
        for child, part in zip(structure.children, parts, strict=True)
        for leaf in leaves_up_to(child, part, what)
    ]
