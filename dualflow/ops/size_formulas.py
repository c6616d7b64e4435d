"""Numbers that are computed from sizes of tensors: an op with an arithmetic expression, and its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.attribute_values import AttributeSyntax, declare, in_text
from dualflow.ops.op_kinds import Decompose, SizeReader
from dualflow.ops.record import REGISTRY, Op
from dualflow.ops.tensor_sizes import SIZES
from dualflow.sizes.size_functions import substitute
from dualflow.sizes.symbolic_sizes import (
    SizeFactor,
    SizeVariable,
    SymInt,
    size_function,
    size_variable,
    variable_of,
)


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
        return substitute(self.size, {v: shapes[index][axis] for v, (index, axis) in self.axes})

    def __repr__(self) -> str:
        """The expression, with ``in0.shape[1]`` for the size of axis 1 of input 0."""
        return _text(self.size, {v: f"in{index}.shape[{axis}]" for v, (index, axis) in self.axes})


_OPERATORS: Final = {"quotient": "//", "remainder": "%"}
_FUNCTIONS: Final = {
    "max": "largest",
    "min": "smallest",
    **{name: name for name in ("normalized_index", "inferred_size", "broadcast_size", "broadcast_stride")},
}
"""The functions in the text of a formula, and their names in :class:`SizeMaths`."""
_INPUT: Final = re.compile(r"in([0-9]{1,9})")
_SIMPLE: Final = re.compile(r"[\w.\[\]]+")


def _text(size: int, names: Mapping[SizeVariable, str]) -> str:
    """A size as an arithmetic expression, in which ``names`` stand for the size variables."""
    if not isinstance(size, SymInt):
        return str(size)
    terms = []
    for factors, coefficient in size.terms.items():
        texts = sorted(_factor_text(factor, names) for factor in factors)
        text = "*".join([str(coefficient), *texts] if coefficient != 1 or not texts else texts)
        terms.append((not factors, text))  # a constant is the last term
    return " + ".join([text for _, text in sorted(terms)])


def _factor_text(factor: SizeFactor, names: Mapping[SizeVariable, str]) -> str:
    if not factor.parts:
        return names[factor]
    first, second = (_text(part, names) for part in factor.parts)
    if factor.kind in _OPERATORS:
        operands = [x if _SIMPLE.fullmatch(x) else f"({x})" for x in (first, second)]
        return f"({operands[0]} {_OPERATORS[factor.kind]} {operands[1]})"
    name = next((name for name, kind in _FUNCTIONS.items() if kind == factor.kind), factor.kind)
    return f"{name}({first}, {second})"


def _formula(size: str) -> SizeFormula:
    """The formula whose ``repr`` is ``size``.

    Raises:
        InvalidArgumentError: the text is no such formula.
    """
    variables: dict[tuple[int, int], SymInt] = {}
    try:
        formula = _size_of(ast.parse(size, mode="eval").body, variables)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        formula = 0
    if not isinstance(formula, SymInt) or not variables:
        raise InvalidArgumentError(f"{size!r} is no formula of sizes; save the model again.")
    axes = [(v, axis) for axis, x in variables.items() if (v := variable_of(x)) is not None]
    return SizeFormula(formula, tuple(axes))


def _size_of(node: ast.expr, variables: dict[tuple[int, int], SymInt]) -> int:
    """The size that an expression describes; ``variables`` has the variable of each axis of an input.

    Raises:
        ValueError: the expression is not one that :func:`_text` writes.
    """
    match node:
        case ast.Constant(value=number) if type(number) is int:
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=number)) if type(number) is int:
            return -number
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _size_of(left, variables) + _size_of(right, variables)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            factors = [_size_of(x, variables) for x in (left, right)]
            if any(isinstance(x, SymInt) and len(x.terms) != 1 for x in factors):
                raise ValueError("a product of sums")
            return factors[0] * factors[1]
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as op, right=right):
            kind = "quotient" if isinstance(op, ast.FloorDiv) else "remainder"
            return size_function(kind, _size_of(left, variables), _size_of(right, variables))
        case ast.Call(func=ast.Name(id=name), args=[x, y], keywords=[]) if name in _FUNCTIONS:
            return size_function(_FUNCTIONS[name], _size_of(x, variables), _size_of(y, variables))
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=axis)
        ) if type(axis) is int and (match := _INPUT.fullmatch(name)) is not None:
            return variables.setdefault((int(match[1]), axis), size_variable(least=0))
    raise ValueError(ast.dump(node))


declare(SizeFormula, AttributeSyntax("size_formula", lambda formula: {"size": repr(formula)}, _formula))


def _known_number(read: SizeReader, *inputs: Any, formula: SizeFormula, dtype: DType) -> Any:
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
