"""Checks of the arguments of dataset methods: counts, functions, and structures that match elements."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dualflow.core.dispatch import AbstractTensor
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.tree import Structure, open_branch
from dualflow.data.element import DatasetSpec, ElementLayout
from dualflow.data.functions import is_tracing_layout
from dualflow.data.stage import UNKNOWN
from dualflow.function.errors import here
from dualflow.ops.static import static_value


def whole_number(value: Any, what: str) -> int:
    """``value``, an integer of Python or NumPy or in a tensor, as an int.

    Raises:
        DTypeError: it is not an integer.
        InvalidArgumentError: it is a symbolic tensor.
    """
    if isinstance(value, AbstractTensor):
        array = static_value(value)
        if array is None:
            return _symbolic(what)
        value = array
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise DTypeError(f"{what} must be an integer, not {value!r}.{here()}") from None


def _symbolic(what: str) -> int:
    """1 instead of a symbolic number while a layout is traced, which doesn't depend on it; else an error."""
    if is_tracing_layout():
        return 1
    raise InvalidArgumentError(
        f"{what} is a tensor that a traced function computes, but a dataset needs a number. Make the dataset "
        f"outside of the function.{here()}"
    )


def entries(values: Any, what: str) -> list[Any]:
    """The entries of a sequence, an array or a tensor.

    Raises:
        DTypeError: it has none: it is a number, None, or a string.
    """
    try:
        if not isinstance(values, str | bytes):
            return list(values)
    except TypeError:
        pass
    raise DTypeError(f"{what} must be a list, not {values!r}.{here()}") from None


def whole_numbers(values: Any, what: str) -> list[int]:
    """The integers of a sequence, an array or a tensor as ints.

    Raises:
        DTypeError: it is no list, or an entry is not an integer.
    """
    return [whole_number(n, f"An entry of {what}") for n in entries(values, what)]


def check_batches(specs: Sequence[Any], method: str) -> None:
    """Check that elements have rows: one first size in all components.

    Raises:
        InvalidArgumentError: a component is a scalar, or first sizes differ.
    """
    shapes = [None if s.shape is UNKNOWN_RANK else s.shape for s in specs]
    if any(shape is not None and not shape for shape in shapes):
        raise InvalidArgumentError(f"Cannot {method} an input with scalar components.{here()}")
    sizes = sorted({shape[0] for shape in shapes if shape} - {None})
    if len(sizes) > 1:
        raise InvalidArgumentError(
            f"`{method}()` is only supported for datasets of elements whose components have a matching "
            f"leading dimension. Encountered both {sizes[0]} and {sizes[1]}.{here()}"
        )


def check_stackable(layout: ElementLayout, method: str) -> None:
    """Check that ``method`` can stack elements, or take their rows: neither is defined for a SparseTensor.

    Raises:
        InvalidArgumentError: a component is a SparseTensor or a dataset.
    """
    check_tensors(layout, method)
    _check_structure(layout.structure, method)


def check_tensors(layout: ElementLayout, method: str) -> None:
    """Check that elements consist of tensors.

    Raises:
        InvalidArgumentError: a component is a dataset.
    """
    if any(isinstance(spec, DatasetSpec) for spec in layout.specs):
        raise InvalidArgumentError(
            f"`{method}()` does not support elements that are datasets, such as windows. Make them tensors "
            f"before, with flat_map(lambda window: window.batch(size)).{here()}"
        )


def _check_structure(structure: Structure, method: str) -> None:
    if not getattr(structure.kind, "can_be_stacked", True):
        kind = structure.kind.__name__
        if kind == "SparseTensor":
            raise InvalidArgumentError(
                f"`{method}()` does not support sparse components. Make them dense before, with "
                f"map(df.sparse.to_dense), or make SparseTensors of batches.{here()}"
            )
        raise InvalidArgumentError(
            f"`{method}()` does not support a {kind}, which is not batchable: derive it from "
            f"df.experimental.BatchableExtensionType, or pass its tensors.{here()}"
        )
    for child in structure.children:
        _check_structure(child, method)


def positive(value: Any, what: str) -> int:
    """``value`` as a positive integer."""
    number = whole_number(value, what)
    if number <= 0:
        raise InvalidArgumentError(f"{what} must be greater than zero, not {number}.{here()}")
    return number


def file_name(value: Any) -> str:
    """The name of a file, from a string, a path, or a scalar tensor of a string."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    value = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    try:
        path = os.fspath(value)
    except TypeError:
        raise DTypeError(f"The name of a file must be a string or a path, not {value!r}.{here()}") from None
    return path.decode() if isinstance(path, bytes) else str(path)


def buffer_size(value: Any) -> int:
    """``value`` as the size of a shuffle buffer, or ``UNKNOWN``."""
    size = whole_number(value, "buffer_size")
    if size <= 0 and size != UNKNOWN:
        raise InvalidArgumentError(
            f"buffer_size must be greater than zero or UNKNOWN_CARDINALITY, not {size}.{here()}"
        )
    return size


def callable_function(value: Any, what: str) -> Callable[..., Any]:
    """``value``, checked to be callable."""
    if not callable(value):
        raise DTypeError(f"{what} must be a callable, not {value!r}.{here()}")
    function: Callable[..., Any] = value
    return function


def leaves_up_to(structure: Structure, value: Any, what: str) -> list[Any]:
    """The parts of ``value`` at the leaves of ``structure``, which may be structures themselves."""
    if structure.kind is None:
        return [value]
    if structure.keys and isinstance(value, Mapping) and set(value) == set(structure.keys):
        parts = [value[key] for key in structure.keys]
    elif isinstance(value, list | tuple) and len(value) == len(structure.children):
        parts = list(value)
    elif structure.keys and (branch := open_branch(value)) is not None and branch[:2] == structure[:2]:
        parts = branch[2]
    else:
        raise DTypeError(f"{what} has another structure than the elements: {value!r}.{here()}")
    return [
        leaf
        for child, part in zip(structure.children, parts, strict=True)
        for leaf in leaves_up_to(child, part, what)
    ]
