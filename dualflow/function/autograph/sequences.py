"""The sequences that loops of the graph iterate over: ranges, rows of tensors, ``zip`` and ``enumerate``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, int32
from dualflow.core.errors import DTypeError
from dualflow.core.records import dataclass
from dualflow.function.autograph.merge_values import symbolic
from dualflow.function.errors import here
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.graph.ir import Value
from dualflow.ops.arithmetic import add, minimum, multiply
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.operand_attributes import OperandInteger, operand_form
from dualflow.ops.positions import IOTA
from dualflow.ops.record import Op
from dualflow.ops.shapes import shape
from dualflow.ops.taking import gather

_ENDLESS: Final = 2**31 - 1
"""The count of the numbers of ``enumerate``, which go on as long as the sequence that they number."""


@dataclass(frozen=True, slots=True)
class LoopIterations(ABC):
    """The iterations of a loop, numbered from 0.

    Attributes:
        count: the number of iterations, a Python int or a scalar.
        counter: the dtype of the loop counter.
    """

    count: Any
    counter: DType

    def python_count(self) -> int | None:
        """The number of iterations as an int, which guards the sizes that it depends on; None if dynamic."""
        return self.count if isinstance(self.count, int) else None

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
    """The slices of a tensor along its first axis."""

    tensor: Any

    def python_count(self) -> int | None:
        size = self.tensor.get_shape()[0]
        return None if size is None else int(size)

    def at(self, k: Any) -> Any:
        return gather(self.tensor, k)


@dataclass(frozen=True, slots=True)
class Zipped(LoopIterations):
    """Tuples of the items of several sequences, up to the end of the shortest."""

    parts: tuple[LoopIterations, ...]

    def python_count(self) -> int | None:
        counts = [part.python_count() for part in self.parts]
        return None if None in counts else min(count for count in counts if count is not None)

    def at(self, k: Any) -> Any:
        return tuple(part.at(cast(k, part.counter)) for part in self.parts)


def iterations_of(iterated: Any) -> LoopIterations | None:
    """The iterations of a graph loop over ``iterated``, a tensor or range; None if Python iterates."""
    if isinstance(iterated, LoopIterations):
        return iterated
    tensor = symbolic(iterated)
    if tensor is None:
        return None
    if not tensor.shape:
        raise DTypeError(f"{tensor} is a scalar, which can't be iterated; use range.{here()}")
    return _range_iterations(tensor) or _constant_iterations(tensor) or _rows(tensor)


def zipped(iterables: Sequence[Any]) -> Zipped:
    """The iterations of ``zip``; Python's sequences become tensors."""
    parts = tuple(iterations_of(x) or _rows(convert_to_tensor(x)) for x in iterables)
    static_counts = [p.count for p in parts if isinstance(p.count, int)]
    count: Any = min(static_counts) if static_counts else None
    for part in parts:
        if not isinstance(part.count, int):
            count = cast(part.count, int32) if count is None else minimum(cast(part.count, int32), count)
    return Zipped(count, int32, parts)


def enumerated(iterable: Any, start: Any) -> Zipped:
    """The iterations of ``enumerate``."""
    iterations = iterations_of(iterable)
    assert iterations is not None
    numbers = Progression(_ENDLESS, int32, start, 1, int32)
    return Zipped(iterations.count, int32, (numbers, iterations))


def _rows(tensor: Any) -> Rows:
    size = tensor.shape[0]
    return Rows(shape(tensor)[0] if size is None else int(size), int32, tensor)


def _range_iterations(tensor: SymbolicTensor) -> Progression | None:
    """The iterations over ``df.range``, whose limits may be dynamic; None for any other tensor."""
    dtype, tracer = tensor.dtype, tensor._tracer
    start, value = _affine_part(tensor._value, add.op, 0, tracer)
    step, value = _affine_part(value, multiply.op, 1, tracer)
    node = value.node
    if node is None or node.op not in (IOTA, operand_form(IOTA)) or len(node.attrs["shape"]) != 1:
        return None
    counter = dtype if dtype.is_integer else int32
    (count,) = node.attrs["shape"]
    if isinstance(count, OperandInteger):
        count = cast(SymbolicTensor(node.inputs[0], tracer), counter)
    return Progression(count, counter, start, step, dtype)


def _affine_part(value: Value, op: Op, neutral: int, tracer: Any) -> tuple[Any, Value]:
    """The scalar that ``op`` combines a vector with, and the vector; the ``neutral`` number without it."""
    node = value.node
    if node is None or node.op is not op or node.inputs[1].spec.rank:
        return neutral, value
    return _plain(SymbolicTensor(node.inputs[1], tracer)), node.inputs[0]


def _constant_iterations(tensor: SymbolicTensor) -> Progression | None:
    """The iterations over a constant vector of integers with equal differences; None for any other."""
    values = tensor.static_value()
    if values is None or values.ndim != 1 or values.dtype.kind not in "iu" or values.size < 2:
        return None
    steps = np.diff(values)
    if (steps != steps[0]).any():
        return None
    return Progression(values.size, tensor.dtype, values[0].item(), steps[0].item(), tensor.dtype)


def _plain(tensor: SymbolicTensor) -> Any:
    """A constant scalar as a Python number; other tensors unchanged."""
    value = tensor.static_value()
    return tensor if value is None else value.item()


def _is(x: Any, number: int) -> bool:
    return not isinstance(x, SymbolicTensor) and bool(x == number)
