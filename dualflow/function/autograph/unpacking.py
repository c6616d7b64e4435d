"""Tensors as Python sequences: unpacking, comprehensions, ``in``, and patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from dualflow.core.errors import DTypeError, OperatorNotAllowedInGraphError
from dualflow.function.autograph.merge_values import is_value, symbolic
from dualflow.function.autograph.sequences import LoopIterations, Progression, Zipped
from dualflow.function.errors import here
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.ops.comparison import equal
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import unstack
from dualflow.ops.reduction import reduce_any

MAX_UNPACKED_ROWS: Final = 1024
"""The largest number of rows of a tensor that Python iterates; each row has its own nodes in the graph."""


def parts(x: Any) -> Any:
    """The iterable that ``a, b = x`` unpacks: the rows of a tensor, any other ``x`` itself.

    Raises:
        DTypeError: ``x`` is a scalar tensor.
        OperatorNotAllowedInGraphError: there are too many rows, or their number is dynamic.
    """
    tensor = symbolic(x)
    return x if tensor is None else _rows(tensor)


def items(x: Any) -> Iterable[Any]:
    """The iterable of a comprehension over ``x``; see :func:`parts` for tensors and their errors."""
    if isinstance(x, LoopIterations):
        count = x.python_count()
        if count is None:
            raise _dynamic_size(f"a range, zip or enumerate of tensors ({x.count} iterations)")
        return [_iteration(x, k) for k in range(_bounded(count))]
    iterable: Iterable[Any] = parts(x)
    return iterable


def contains(container: Any, item: Any) -> Any:
    """``item in container``, if the container, a member or the item may be a symbolic tensor."""
    tensor = symbolic(container)
    if tensor is not None:
        return reduce_any(equal(tensor, item))
    if type(container) in (list, tuple, range) and any(symbolic(x) is not None for x in (item, *container)):
        result: Any = False
        for member in container:
            if member is item:
                return True
            if is_value(member) and is_value(item):
                result = reduce_any(equal(member, item)) | result
        return result
    return item in container


def is_sequence(x: Any, length: int) -> bool:
    """Whether ``x`` matches a sequence pattern of ``length`` items."""
    tensor = symbolic(x)
    if tensor is not None:
        return bool(tensor.shape) and bool(tensor.get_shape()[0] == length)
    return isinstance(x, Sequence) and not isinstance(x, str | bytes | bytearray) and len(x) == length


def _rows(tensor: SymbolicTensor) -> list[Any]:
    if not tensor.shape:
        raise DTypeError(f"{tensor} is a scalar, which can't be unpacked.{here()}")
    count = tensor.get_shape()[0]
    if count is None:
        raise _dynamic_size(str(tensor))
    _bounded(int(count))
    rows: list[Any] = unstack(tensor)
    return rows


def _iteration(iterations: LoopIterations, k: int) -> Any:
    """The item of iteration ``k``; a Python number for a range of Python numbers."""
    if isinstance(iterations, Zipped):
        return tuple([_iteration(part, k) for part in iterations.parts])
    if (
        isinstance(iterations, Progression)
        and symbolic(iterations.start) is None
        and symbolic(iterations.step) is None
    ):
        return iterations.start + k * iterations.step
    return iterations.at(convert_to_tensor(k, iterations.counter))


def _bounded(count: int) -> int:
    if count > MAX_UNPACKED_ROWS:
        raise OperatorNotAllowedInGraphError(
            f"Python would unpack {count} rows here, each with its own nodes in the graph; at most "
            f"{MAX_UNPACKED_ROWS} are allowed. Map over them with df.map_fn or df.vectorized_map, or use an "
            f"op of the whole tensor.{here()}"
        )
    return count


def _dynamic_size(what: str) -> OperatorNotAllowedInGraphError:
    return OperatorNotAllowedInGraphError(
        f"Python would unpack {what} here, whose size is dynamic. Loop over it with a `for` statement, or "
        f"map over it with df.map_fn.{here()}"
    )
