"""The size code of a program: computes all parameters that follow from the sizes of arguments, as data.

One routine executes it (``runtime/sizes.ll``), so a program for all sizes has no machine code of its own but
kernels. A call copies the parameter table, stores the sizes of its arguments, and runs the code.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import IntEnum
from typing import Any, Final

import numpy as np

from dualflow.backends.llvm.parameter_table import ParameterTable
from dualflow.core.dtypes import DType, float64
from dualflow.core.exact_equality import exact
from dualflow.core.records import dataclass, field
from dualflow.sizes.size_scalars import SizeScalar
from dualflow.sizes.symbolic_sizes import SizeFactor, SymInt

_ZERO: Final = 0
"""The index of a parameter that is always 0, in the head of the first step list."""

_COMPUTED: Final = frozenset({SymInt, SizeScalar})
"""The types of parameters that size code computes."""


class SizeOp(IntEnum):
    """The op of an instruction: ``op, target, x, y, k``.

    ``target``, ``x`` and ``y`` are indices of parameters; the target of a check, which are the ops from
    ``FAIL_IF_EQUAL`` on, is the number that it writes to the status. The ops from ``QUOTIENT`` to
    ``BROADCAST_STRIDE`` are those of :class:`~dualflow.sizes.size_maths.SizeMaths`.
    """

    END = 0
    MULTIPLY_ADD = 1
    """``x * k + y``."""
    MULTIPLY = 2
    QUOTIENT = 3
    REMAINDER = 4
    LARGEST = 5
    SMALLEST = 6
    NORMALIZED_INDEX = 7
    INFERRED_SIZE = 8
    BROADCAST_SIZE = 9
    BROADCAST_STRIDE = 10
    EQUAL = 11
    """1 if ``x == y``, else 0; so is ``LESS``."""
    LESS = 12
    ELEMENTS = 13
    """``x * y``, where ``y`` and the result are the bits of a float64, which does not overflow."""
    TO_FLOAT32 = 14
    """A size as a float32, whose bits are the low half of a word."""
    TO_FLOAT64 = 15
    FLOAT32_ADD = 16
    FLOAT32_SUBTRACT = 17
    FLOAT32_MULTIPLY = 18
    FLOAT32_DIVIDE = 19
    FLOAT64_ADD = 20
    FLOAT64_SUBTRACT = 21
    FLOAT64_MULTIPLY = 22
    FLOAT64_DIVIDE = 23
    FAIL_IF_EQUAL = 24
    FAIL_UNLESS_EQUAL = 25
    FAIL_IF_LESS = 26
    FAIL_UNLESS_LESS = 27
    FAIL_IF_MORE_ELEMENTS = 28
    """Fails if ``x > y``, for the bits of two float64."""


@dataclass(slots=True, eq=False)
class SizeCode:
    """Writes size code for a parameter table, to which it appends constants and intermediate values.

    Attributes:
        table: the parameter table.
        words: the instructions so far.
    """

    table: ParameterTable
    words: list[int] = field(default_factory=list)
    _constants: dict[int, int] = field(default_factory=lambda: {0: _ZERO})
    _values: dict[SymInt, int] = field(default_factory=dict)
    _scalars: dict[Hashable, int] = field(default_factory=dict)
    _factors: dict[SizeFactor, int] = field(default_factory=dict)
    _products: dict[tuple[SizeFactor, ...], int] = field(default_factory=dict)

    def compute_parameters(self) -> None:
        """Compute all parameters of the table that depend on sizes, each expression once."""
        computed = [(i, size) for i, size in enumerate(self.table.params) if type(size) in _COMPUTED]
        for i, size in computed:
            if not isinstance(size, SymInt):
                assert isinstance(size, SizeScalar), "these are the types of computed parameters"
                self._append(SizeOp.MULTIPLY_ADD, i, self._scalar(size), _ZERO, 1)
            else:
                value = self._values.get(size)
                if value is None:
                    self._values[size] = self._compute(size, i)
                else:
                    self._append(SizeOp.MULTIPLY_ADD, i, value, _ZERO, 1)

    def value(self, size: int) -> int:
        """The index of a parameter with the value of ``size``."""
        if not isinstance(size, SymInt):
            return self.constant(size)
        value = self._values.get(size)
        if value is None:
            value = self._values[size] = self._compute(size, None)
        return value

    def constant(self, number: int) -> int:
        """The index of a parameter that is ``number``."""
        index = self._constants.get(number)
        if index is None:
            index = self._constants[number] = self.table.append(number)
        return index

    def apply(self, op: SizeOp, x: int, y: int) -> int:
        """Apply an op to two parameters; returns the index of the result."""
        return self._append(op, self.table.append(0), x, y)

    def check(self, op: SizeOp, number: int, x: int, y: int) -> None:
        """Append a check of two parameters, which fails with ``number``."""
        self._append(op, number, x, y)

    def elements(self, shape: Sequence[int]) -> int:
        """The number of elements of ``shape``, as the bits of a float64."""
        count = self.constant(float_bits(1.0))
        for size in shape:
            count = self.apply(SizeOp.ELEMENTS, self.value(size), count)
        return count

    def array(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The words of the code, and an END instruction."""
        return np.array([*self.words, SizeOp.END, 0, 0, 0, 0], np.int64)

    def _append(self, op: SizeOp, target: int, x: int, y: int, k: int = 0) -> int:
        self.words += (op, target, x, y, k)
        return target

    def _compute(self, size: SymInt, target: int | None) -> int:
        """Compute a polynomial; returns its index, which is ``target`` unless that is None."""
        if [f for monomial in size.terms for f in monomial if f not in self._factors]:
            for factor in size.new_factors(self._factors):
                self._factors[factor] = self._factor(factor)
        constant = size.terms.get((), 0)
        total = self.constant(constant) if constant else _ZERO
        for monomial, coefficient in size.terms.items():
            if not monomial:
                continue
            product = self._products.get(monomial)
            if product is None:
                product = self._products[monomial] = self._product(monomial)
            if target is None:
                if len(size.terms) == 1 and coefficient == 1:
                    return product
                target = self.table.append(0)
            total = self._append(SizeOp.MULTIPLY_ADD, target, product, total, coefficient)
        return total

    def _scalar(self, scalar: SizeScalar) -> int:
        """The index of a parameter with the bits of a scalar of sizes."""
        key = exact(scalar)  # 0.0 equals -0.0
        index = self._scalars.get(key)
        if index is None:
            index = self._scalars[key] = self._compute_scalar(*scalar)
        return index

    def _compute_scalar(self, operation: np.ufunc | None, dtype: DType, operands: tuple[Any, ...]) -> int:
        name = dtype.name.upper()
        if operation is None and isinstance(operands[0], float):
            return self.constant(_bits(dtype, operands[0]))
        if operation is None:
            return self.apply(SizeOp[f"TO_{name}"], self.value(operands[0]), _ZERO)
        values = [self._scalar(x) for x in operands]
        if operation is np.negative:
            return self.apply(SizeOp[f"{name}_SUBTRACT"], self.constant(_bits(dtype, -0.0)), *values)
        return self.apply(SizeOp[f"{name}_{operation.__name__.upper()}"], *values)

    def _product(self, monomial: tuple[SizeFactor, ...]) -> int:
        """Multiply factors, after the product of all but the last."""
        index = self._factors[monomial[0]]
        for end in range(2, len(monomial) + 1):
            product = self._products.get(monomial[:end])
            if product is None:
                factor = self._factors[monomial[end - 1]]
                product = self._products[monomial[:end]] = self.apply(SizeOp.MULTIPLY, index, factor)
            index = product
        return index

    def _factor(self, factor: SizeFactor) -> int:
        if factor.kind == "variable":
            return self.table.size_param(factor)
        return self.apply(SizeOp[factor.kind.upper()], *map(self.value, factor.parts))


def float_bits(number: float) -> int:
    """The bits of a float64 as an integer."""
    return _bits(float64, number)


def _bits(dtype: DType, number: float) -> int:
    return int.from_bytes(dtype.dtype.type(number).tobytes(), "little", signed=dtype.size == 8)
