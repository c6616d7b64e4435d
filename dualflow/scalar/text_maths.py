"""The scalar ops as source code of a language: what the languages of the backends have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Generic, Protocol, TypeVar

from dualflow.core.dtypes import DType, bool_, int32, int64, uint8, uint16, uint32, uint64
from dualflow.core.errors import DTypeError
from dualflow.scalar.defined_ops import DefinedOps
from dualflow.scalar.evaluation import evaluate
from dualflow.scalar.ir import ScalarOp
from dualflow.scalar.maths import definition, has_fallback

UNSIGNED: Final = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
"""The unsigned dtype of each size, in whose arithmetic integers wrap."""


class TextValue(Protocol):
    """A name or a constant in source code, and its dtype; repeating it computes nothing again."""

    @property
    def text(self) -> str: ...
    @property
    def dtype(self) -> DType: ...


V = TypeVar("V", bound=TextValue)


class SourceLines(ABC):
    """Source lines under construction, and the number of temporaries named so far.

    Attributes:
        text: the lines.
        depth: the indentation of the next line.
    """

    def __init__(self, depth: int = 1) -> None:
        self.text: list[str] = []
        self.depth = depth
        self._count = 0

    @abstractmethod
    def definition_head(self, value: TextValue, name: str) -> str:
        """The text before the expression in a line that defines ``name``, of the dtype of ``value``."""

    @abstractmethod
    def block(self, head: str) -> AbstractContextManager[None]:
        """A context that adds ``head``, and indents the lines inside."""

    def add(self, line: str) -> None:
        """Append a line."""
        self.text.append("    " * self.depth + line if line else "")

    def name(self) -> str:
        """A new name of a temporary."""
        self._count += 1
        return f"t{self._count}"

    def rename(self, old: TextValue, new: str) -> bool:
        """Rename a temporary to ``new`` if the last line defines it; returns whether it was renamed."""
        indent = "    " * self.depth
        head = indent + self.definition_head(old, old.text)
        if not old.text.startswith("t") or not self.text or not self.text[-1].startswith(head):
            return False
        self.text[-1] = indent + self.definition_head(old, new) + self.text[-1][len(head) :]
        return True


def wrapped_integer(number: float, dtype: DType) -> int:
    """``number`` modulo the range of an integer dtype.

    Raises:
        DTypeError: ``number`` is not an integer.

    >>> from dualflow.core.dtypes import int8, uint8
    >>> wrapped_integer(-1, uint8), wrapped_integer(200, int8)
    (255, -56)
    """
    if number != int(number):
        raise DTypeError(f"{number} is not an integer: cast the {dtype.name} to a float dtype first")
    size = 8 * dtype.size
    bits = int(number) & ((1 << size) - 1)
    return bits - (1 << size) if not dtype.is_unsigned and bits >> (size - 1) else bits


def of_floats(name: str) -> Callable[..., Any]:
    """A method that calls the language's function ``name`` for floats, and returns integers unchanged."""

    def method(self: TextMaths[V], x: V, *others: V) -> V:
        return self.native(name, x, *others) if x.dtype.is_floating else x

    return method


class TextMaths(DefinedOps, Generic[V]):
    """The namespace of scalar ops whose results are lines of source code.

    Each result has a name of its own, so that nothing is computed twice. A language adds its arithmetic and
    its conversions; comparisons and calls are written alike in all of them.

    Attributes:
        fallback_conditions: if it is a list, ops with a guarded definition omit the fallback, and append the
            condition under which it is needed.
    """

    def __init__(self) -> None:
        self.fallback_conditions: list[V] | None = None

    # The language

    @abstractmethod
    def expression(self, dtype: DType, text: str) -> V:
        """A new named value, whose definition is the expression ``text``."""

    @abstractmethod
    def constant(self, number: float, dtype: DType) -> V:
        """A constant: floats round to nearest, integers wrap."""

    @abstractmethod
    def native(self, name: str, *operands: V) -> V:
        """The result of the language's own function ``name`` of floats, of the first operand's dtype."""

    @abstractmethod
    def definition_name(self, op: ScalarOp, dtype: DType) -> str:
        """The name of the function that computes ``op``, which is written at its first call."""

    @abstractmethod
    def negative(self, x: V) -> V:
        """``-x``; integers wrap."""

    @abstractmethod
    def abs(self, x: V) -> V:
        """The magnitude of ``x``."""

    @abstractmethod
    def where(self, condition: V, x: V, y: V) -> V:
        """``x`` where the condition holds, else ``y``; without a branch."""

    @abstractmethod
    def integer_power(self, x: V, y: V) -> V:
        """``x**y`` of integers, wrapping; ``y`` is read as unsigned."""

    @abstractmethod
    def reinterpreted(self, x: V, dtype: DType) -> V:
        """The same bits; one of the dtypes is floating."""

    @abstractmethod
    def converted(self, x: V, dtype: DType) -> V:
        """The same number by the language's own conversion: not of floats to integers or bools."""

    @abstractmethod
    def saturated(self, x: V, dtype: DType) -> V:
        """A float as the nearest integer of 32 or 64 bits; NaN is 0."""

    # What all languages share

    def called(self, name: str, *operands: V, dtype: DType | None = None) -> V:
        """The result of a call, of ``dtype`` or the first operand's."""
        text = f"{name}({', '.join([x.text for x in operands])})"
        return self.expression(dtype or operands[0].dtype, text)

    def less(self, x: V, y: V) -> V:
        return self.expression(bool_, f"{x.text} < {y.text}")

    def less_equal(self, x: V, y: V) -> V:
        return self.expression(bool_, f"{x.text} <= {y.text}")

    def greater(self, x: V, y: V) -> V:
        return self.expression(bool_, f"{x.text} > {y.text}")

    def greater_equal(self, x: V, y: V) -> V:
        return self.expression(bool_, f"{x.text} >= {y.text}")

    def equal(self, x: V, y: V) -> V:
        return self.expression(bool_, f"{x.text} == {y.text}")

    def not_equal(self, x: V, y: V) -> V:
        return self.expression(bool_, f"{x.text} != {y.text}")

    def sign(self, x: V) -> V:
        """-1, 0 or 1; NaN for NaN."""
        zero, one = self.constant(0, x.dtype), self.constant(1, x.dtype)
        signed = self.where(self.greater(x, zero), one, self.where(self.equal(x, zero), zero, x))
        if x.dtype.is_unsigned:
            return signed
        return self.where(self.less(x, zero), self.constant(-1, x.dtype), signed)

    def isnan(self, x: V) -> V:
        return self.not_equal(x, x) if x.dtype.is_floating else self.constant(0, bool_)

    def isinf(self, x: V) -> V:
        if not x.dtype.is_floating:
            return self.constant(0, bool_)
        return self.equal(self.abs(x), self.constant(float("inf"), x.dtype))

    def isfinite(self, x: V) -> V:
        if not x.dtype.is_floating:
            return self.constant(1, bool_)
        return self.less(self.abs(x), self.constant(float("inf"), x.dtype))

    def bitcast(self, x: V, dtype: DType) -> V:
        """The same bits as a number of another dtype of the same size."""
        has_float = x.dtype.is_floating or dtype.is_floating
        return self.reinterpreted(x, dtype) if has_float else self.converted(x, dtype)

    def cast(self, x: V, dtype: DType) -> V:
        """The same number in another dtype; a float out of range is the nearest integer, NaN is 0."""
        if x.dtype is dtype:
            return x
        if dtype.is_bool:
            return self.not_equal(x, self.constant(0, x.dtype))
        if not x.dtype.is_floating or dtype.is_floating:
            return self.converted(x, dtype)
        if dtype.size == 8 or dtype is int32:
            return self.saturated(x, dtype)
        wide = self.saturated(x, int32 if dtype.size < 4 else int64)
        low, high = (self.constant(end, wide.dtype) for end in (dtype.min, dtype.max))
        capped = self.where(self.greater(wide, high), high, wide)
        return self.converted(self.where(self.less(capped, low), low, capped), dtype)

    # Functions that have a definition

    def pow(self, x: V, y: V) -> V:
        """``x**y``: of floats as C's pow, of integers wrapping, where ``y`` is not negative."""
        return self.defined(ScalarOp.POW, x, y) if x.dtype.is_floating else self.integer_power(x, y)

    def defined(self, op: ScalarOp, *operands: V) -> V:
        """A call of the definition of ``op``, or its code if ``fallback_conditions`` is a list."""
        dtype = operands[0].dtype
        if self.fallback_conditions is not None and has_fallback(op, dtype):
            value, *conditions = evaluate(definition(op, dtype).function, self, operands)
            self.fallback_conditions += conditions
            return value
        return self.called(self.definition_name(op, dtype), *operands)
