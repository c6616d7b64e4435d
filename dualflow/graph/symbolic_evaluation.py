"""Numbers for the symbolic sizes of graphs that the interpreter evaluates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import replace
from dualflow.graph.control_spec import LoopSpec
from dualflow.graph.ir import Graph, Node
from dualflow.graph.symbolic_size_ops import BIND_SIZE, is_argument_size
from dualflow.sizes.symbolic_sizes import SizeVariable, bind_sizes, evaluate_size, size_variables, variable_of

Array = np.ndarray[Any, Any]
Sizes = dict[SizeVariable, int]


@contextmanager
def evaluated_with(sizes: Mapping[SizeVariable, int]) -> Iterator[None]:
    """A context in which graphs are evaluated with these numbers for size variables; graphs may bind more."""
    token = _sizes.set(dict(sizes))
    try:
        yield
    finally:
        _sizes.reset(token)


def bound_sizes() -> Sizes | None:
    """The values that size variables are bound to; None outside of :func:`evaluated_with`."""
    return _sizes.get()


def bind_inputs(sizes: Sizes, graph: Graph, arrays: Sequence[Array]) -> None:
    """Bind the size variables that are sizes of the inputs of ``graph``, such as of carried values."""
    for value, array in zip(graph.inputs, arrays, strict=True):
        for axis, size in enumerate(value.spec.shape):
            variable = None if size is None else variable_of(size)
            if variable is not None:
                sizes[variable] = array.shape[axis]


def bind_size(sizes: Sizes, node: Node, arrays: Sequence[Array]) -> None:
    """Bind the variable of a :data:`BIND_SIZE` node; those of arguments' sizes are bound with the inputs.

    Raises:
        InvalidArgumentError: the size is below its least value.
    """
    attrs = node.attrs
    if is_argument_size(node):
        return
    number = int(arrays[0].reshape(-1)[attrs["index"]]) if arrays else evaluate_size(attrs["value"], sizes)
    if attrs["least"] is not None and number < attrs["least"]:
        raise InvalidArgumentError(f"{attrs['needed_by']}: a size is negative")
    variable = variable_of(attrs["size"])
    assert variable is not None, "a bound size is a size variable"
    sizes[variable] = number


def binds(node: Node) -> bool:
    """Whether ``node`` sets a size variable to a number that is computed at run time."""
    return node.op is BIND_SIZE


def with_numbers(node: Node, sizes: Mapping[SizeVariable, int]) -> Node:
    """``node`` with numbers for symbolic sizes in its attributes; those of graphs inside it stay."""
    attrs = {name: _with_numbers(value, sizes) for name, value in node.attrs.items()}
    if all(value is node.attrs[name] for name, value in attrs.items()):
        return node
    return node.like(node.op, node.inputs, attrs, node.specs)


def _with_numbers(value: Any, sizes: Mapping[SizeVariable, int]) -> Any:
    if isinstance(value, LoopSpec):
        symbolic = value.length is not None and size_variables(value.length)
        return replace(value, length=evaluate_size(value.length, sizes)) if symbolic else value  # type: ignore[arg-type]  # it is symbolic
    return bind_sizes(value, sizes)


_sizes: Final[ContextVar[Sizes | None]] = ContextVar("dualflow_sizes", default=None)
