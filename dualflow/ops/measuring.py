"""The shape of a tensor as an integer tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape
from dualflow.core.size_functions import substitute
from dualflow.core.spec import TensorSpec
from dualflow.core.symbolic_sizes import (
    SizeVariable,
    SymInt,
    is_static,
    size_function,
    size_variable,
    variable_of,
)
from dualflow.ops.attribute_values import AttributeForm, declare, in_text
from dualflow.ops.op_kinds import Decompose, SizeVector
from dualflow.ops.record import REGISTRY, Op, register
from dualflow.ops.samples import Domain, Sample

SIZES = register(
    Op(
        name="sizes",
        doc="""The integers ``values``.""",
        infer=lambda values, dtype: TensorSpec.of(Shape([len(values)]), dtype),
        kernel=lambda values, dtype: np.array(values, dtype.dtype),
        kind=SizeVector(),
        samples=(Sample((), {"values": (2, 3), "dtype": int32}),),
    )
)


def _known_shape(read: Any, x: Any, dtype: DType) -> Any:
    engine, sizes = dispatch.current(), tuple(x.shape)
    if is_static(sizes):
        return engine.constant(np.array(sizes, dtype.dtype))
    return engine.apply(SIZES, (), {"values": sizes, "dtype": dtype})


SHAPE = register(
    Op(
        name="shape",
        doc="""The sizes of ``x``, if they are known at run time only.""",
        infer=lambda x, dtype: TensorSpec.of(Shape([len(x.shape)]), dtype),
        kernel=lambda x, dtype: np.array(x.shape, dtype.dtype),
        kind=Decompose(_known_shape),
        strings=True,
        samples=(Sample((Domain(-50, 50, "fib", (2, 3)),), {"dtype": int32}),),
    )
)


def sizes_of(x: Any, dtype: DType = int32) -> Any:
    """The sizes of the tensor ``x`` as a tensor of one axis."""
    engine = dispatch.current()
    if x.shape.is_static:
        return engine.constant(np.array(x.shape, dtype.dtype))
    return engine.apply(SHAPE, (x,), {"dtype": dtype})


@dataclass(frozen=True, slots=True)
class SizeFormula:
    """A number that is computed from sizes of the inputs of a node.

    Attributes:
        size: the expression, in size variables.
        axes: for each size variable the number of the input, and the axis, that it is the size of.
    """

    size: SymInt
    axes: tuple[tuple[SizeVariable, tuple[int, int]], ...]

    def of(self, shapes: Sequence[Sequence[Any]]) -> int:
        """The number, or the expression of symbolic sizes, for inputs of these shapes."""
        return substitute(self.size, {v: shapes[place][axis] for v, (place, axis) in self.axes})

    def __repr__(self) -> str:
        where = ", ".join(f"{v.name} = axis {axis} of input {place}" for v, (place, axis) in self.axes)
        return f"{self.size!r} with {where}"


Terms = tuple[tuple[int, tuple[Any, ...]], ...]
"""A polynomial as plain data: for each term its coefficient and factors.

A factor is the name of a size variable, or the name of a function of sizes and its two operands.
"""


def _terms(size: int) -> int | Terms:
    """A size as plain data."""
    if not isinstance(size, SymInt):
        return size
    return tuple(
        [
            (
                coefficient,
                tuple([f.name if not f.parts else (f.kind, *map(_terms, f.parts)) for f in factors]),
            )
            for factors, coefficient in sorted(size.terms.items())
        ]
    )


def _size_of(terms: int | Terms, variables: dict[str, SymInt]) -> int:
    """The size that plain data describe; ``variables`` has the variable of each name, and gets new ones."""
    if isinstance(terms, int):
        return terms
    total = 0
    for coefficient, factors in terms:
        product = coefficient
        for factor in factors:
            if isinstance(factor, str):
                product = product * variables.setdefault(factor, size_variable(least=0))
            else:
                kind, *parts = factor
                operands = [_size_of(part, variables) for part in parts]
                product = product * size_function(kind, *operands)
        total = total + product
    return total


def _fields(formula: SizeFormula) -> dict[str, Any]:
    return {"terms": _terms(formula.size), "axes": tuple([(v.name, axis) for v, axis in formula.axes])}


def _formula(terms: Terms, axes: tuple[tuple[str, tuple[int, int]], ...]) -> SizeFormula:
    variables: dict[str, SymInt] = {}
    size = _size_of(terms, variables)
    by_name = {name: variable_of(x) for name, x in variables.items()}
    if not isinstance(size, SymInt) or by_name.keys() != {name for name, _ in axes}:
        raise InvalidArgumentError("a formula of sizes has other variables than axes; save the model again.")
    return SizeFormula(size, tuple([(v, axis) for name, axis in axes if (v := by_name[name]) is not None]))


declare(SizeFormula, AttributeForm("size_formula", _fields, _formula))


def _known_number(read: Any, *inputs: Any, formula: SizeFormula, dtype: DType) -> Any:
    engine = dispatch.current()
    number = formula.of([tuple(x.shape) for x in inputs])
    if type(number) is int:
        return engine.constant(np.array(number, dtype.dtype))
    vector = engine.apply(SIZES, (), {"values": (number,), "dtype": dtype})
    return engine.apply(REGISTRY["reshape"], (vector,), {"shape": Shape(())})


SIZE_FORMULA: Final = in_text(
    Op(
        name="size_formula",
        doc="""The integer scalar that ``formula`` computes from the sizes of the inputs.""",
        infer=lambda *inputs, formula, dtype: TensorSpec.of(Shape(()), dtype),
        kernel=lambda *arrays, formula, dtype: np.array(formula.of([x.shape for x in arrays]), dtype.dtype),
        kind=Decompose(_known_number),
        strings=True,
    )
)
