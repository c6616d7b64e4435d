"""What a loop in the graph counts through: ranges, the rows of tensors, and several of those at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.dtypes import DType, int32
from dualflow.core.errors import DTypeError
from dualflow.core.records import dataclass
from dualflow.function.autograph.merge_values import symbolic
from dualflow.function.errors import here
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.ops.arithmetic import minimum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.positions import IOTA, RANGE
from dualflow.ops.rounding import ceil
from dualflow.ops.shapes import shape
from dualflow.ops.taking import gather


@dataclass(frozen=True, slots=True)
class LoopIterations(ABC):
    """The iterations of a loop, by their number from 0.

    Attributes:
        count: how many, a Python int or a scalar.
        counter: the dtype of their numbers.
    """

    count: Any
    counter: DType

    def has(self, k: Any) -> Any:
        """Whether there is an iteration ``k``."""
        return k < self.count

    @abstractmethod
    def at(self, k: Any) -> Any:
        """The item of iteration ``k``."""


@dataclass(frozen=True, slots=True)
class Progression(LoopIterations):
    """The numbers ``start``, ``start + step``, ..."""

    start: Any
    step: Any
    dtype: DType

    def at(self, k: Any) -> Any:
        x = cast(k, self.dtype) if self.dtype is not self.counter else k
        scaled = x if _is(self.step, 1) else x * self.step
        return scaled if _is(self.start, 0) else scaled + self.start


@dataclass(frozen=True, slots=True)
class Rows(LoopIterations):
    """The parts of a tensor along its first axis."""

    tensor: Any

    def at(self, k: Any) -> Any:
        return gather(self.tensor, k)


@dataclass(frozen=True, slots=True)
class Zipped(LoopIterations):
    """Several sequences side by side, as far as the shortest goes."""

    parts: tuple[LoopIterations, ...]

    def at(self, k: Any) -> Any:
        return tuple(part.at(cast(k, part.counter)) for part in self.parts)


def iterations_of(iterated: Any) -> LoopIterations | None:
    """The iterations of a loop over ``iterated`` in the graph; None for what Python iterates."""
    if isinstance(iterated, LoopIterations):
        return iterated
    symbol = symbolic(iterated)
    if symbol is None:
        return None
    if not symbol.shape:
        raise DTypeError(f"{symbol} is a scalar, which can't be iterated; use range.{here()}")
    return _range_iterations(symbol) or _constant_iterations(symbol) or _rows(symbol)


def zipped(iterables: Sequence[Any]) -> Zipped:
    """The iterations of ``zip``; Python's sequences become tensors."""
    parts = tuple(iterations_of(x) or _rows(convert_to_tensor(x)) for x in iterables)
    known = [p.count for p in parts if isinstance(p.count, int)]
    count: Any = min(known) if known else None
    for part in parts:
        if not isinstance(part.count, int):
            count = cast(part.count, int32) if count is None else minimum(cast(part.count, int32), count)
    return Zipped(count, int32, parts)


def enumerated(iterable: Any, start: Any) -> Zipped:
    """The iterations of ``enumerate``."""
    iterations = iterations_of(iterable)
    assert iterations is not None
    numbers = Progression(iterations.count, int32, start, 1, int32)
    return Zipped(iterations.count, int32, (numbers, iterations))


def _rows(tensor: Any) -> Rows:
    size = tensor.shape[0]
    return Rows(shape(tensor)[0] if size is None else int(size), int32, tensor)


def _range_iterations(symbol: SymbolicTensor) -> Progression | None:
    """The iterations over ``df.range``, whose limits may be unknown; None for any other tensor."""
    node = symbol._value.node
    if node is None:
        return None
    if node.op is IOTA and len(node.attrs["shape"]) == 1:
        dtype = symbol.dtype
        return Progression(node.attrs["shape"][0], dtype if dtype.is_integer else int32, 0, 1, dtype)
    if node.op is not RANGE or symbol.dtype.is_unsigned:
        return None
    start, limit, step = (_plain(SymbolicTensor(v, symbol._tracer)) for v in node.inputs)
    dtype = symbol.dtype
    if not dtype.is_integer:
        return Progression(cast(ceil((limit - start) / step), int32), int32, start, step, dtype)
    span = limit if _is(start, 0) else limit - start
    count = span if _is(step, 1) else -(-span // step)
    return Progression(count, dtype, start, step, dtype)


def _constant_iterations(symbol: SymbolicTensor) -> Progression | None:
    """The iterations over a vector of known numbers at equal distances; None for any other."""
    known = symbol.static_value()
    if known is None or known.ndim != 1 or known.dtype.kind not in "iu" or known.size < 2:
        return None
    steps = np.diff(known)
    if (steps != steps[0]).any():
        return None
    return Progression(known.size, symbol.dtype, known[0].item(), steps[0].item(), symbol.dtype)


def _plain(symbol: SymbolicTensor) -> Any:
    """A Python number for a scalar that is known."""
    known = symbol.static_value()
    return symbol if known is None else known.item()


def _is(x: Any, number: int) -> bool:
    return not isinstance(x, SymbolicTensor) and bool(x == number)
