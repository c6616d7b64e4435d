"""Tensors where Python takes a sequence apart: unpacking, comprehensions, ``in``, and patterns."""

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

UNROLLED: Final = 1024
"""As many rows may a tensor have that Python iterates: each is code of its own in the graph."""


def parts(x: Any) -> Any:
    """What ``a, b = x`` takes apart: the rows of a tensor, anything else as it is.

    Raises:
        DTypeError: a scalar.
        OperatorNotAllowedInGraphError: too many rows, or nobody knows how many.
    """
    symbol = symbolic(x)
    return x if symbol is None else _rows(symbol)


def items(x: Any) -> Iterable[Any]:
    """What a comprehension goes through; see :func:`parts` for tensors and their errors."""
    if isinstance(x, LoopIterations):
        if not isinstance(x.count, int):
            raise _unknown(f"a range, zip or enumerate of tensors ({x.count} iterations)")
        return [_iteration(x, k) for k in range(_bounded(x.count))]
    found: Iterable[Any] = parts(x)
    return found


def contains(container: Any, item: Any) -> Any:
    """``item in container``, where one of both, or a member, may be a symbol."""
    symbol = symbolic(container)
    if symbol is not None:
        return reduce_any(equal(symbol, item))
    if type(container) in (list, tuple, range) and any(symbolic(x) is not None for x in (item, *container)):
        found: Any = False
        for member in container:
            if member is item:
                return True
            if is_value(member) and is_value(item):
                found = reduce_any(equal(member, item)) | found
        return found
    return item in container


def is_sequence(x: Any, length: int) -> bool:
    """Whether ``x`` matches a pattern of ``length`` parts."""
    symbol = symbolic(x)
    if symbol is not None:
        return bool(symbol.shape) and symbol.shape[0] == length
    return isinstance(x, Sequence) and not isinstance(x, str | bytes | bytearray) and len(x) == length


def _rows(symbol: SymbolicTensor) -> list[Any]:
    if not symbol.shape:
        raise DTypeError(f"{symbol} is a scalar, which can't be taken apart.{here()}")
    if symbol.shape[0] is None:
        raise _unknown(str(symbol))
    _bounded(int(symbol.shape[0]))
    rows: list[Any] = unstack(symbol)
    return rows


def _iteration(iterations: LoopIterations, k: int) -> Any:
    """The item of iteration ``k``, as Python numbers where the loop counts in those."""
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
    if count > UNROLLED:
        raise OperatorNotAllowedInGraphError(
            f"Python would go through {count} rows here one by one, and each becomes code of its own; up to "
            f"{UNROLLED} are. Map over them with df.map_fn or df.vectorized_map, or use an op of the "
            f"whole tensor.{here()}"
        )
    return count


def _unknown(what: str) -> OperatorNotAllowedInGraphError:
    return OperatorNotAllowedInGraphError(
        f"Python would take {what} apart here, whose size is known only when it runs. Loop over it with a "
        f"`for` statement, or map over it with df.map_fn.{here()}"
    )
