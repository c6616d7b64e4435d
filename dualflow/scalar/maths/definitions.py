"""Definitions of scalar ops, such as EXP, as scalar functions of simpler ops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from dualflow.core.dtypes import DType, float32
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.scalar.ir import ScalarFunction, ScalarOp
from dualflow.scalar.maths.floating import Guarded
from dualflow.scalar.tracing import Traced, trace

_DIVISION: Final = "dualflow.scalar.maths.division"
_ERROR_FUNCTION: Final = "dualflow.scalar.maths.error_function"
_EXPONENTIAL: Final = "dualflow.scalar.maths.exponential"
_INVERSE_TRIGONOMETRY: Final = "dualflow.scalar.maths.inverse_trigonometry"
_LOGARITHM: Final = "dualflow.scalar.maths.logarithm"
_NORMAL_DISTRIBUTION: Final = "dualflow.scalar.maths.normal_distribution"
_POWER: Final = "dualflow.scalar.maths.power"
_TRIGONOMETRY: Final = "dualflow.scalar.maths.trigonometry"

_UNARY: Final = {
    ScalarOp.EXP: _EXPONENTIAL,
    ScalarOp.EXP2: _EXPONENTIAL,
    ScalarOp.EXPM1: _EXPONENTIAL,
    ScalarOp.SIGMOID: _EXPONENTIAL,
    ScalarOp.SINH: _EXPONENTIAL,
    ScalarOp.COSH: _EXPONENTIAL,
    ScalarOp.TANH: _EXPONENTIAL,
    ScalarOp.LOG: _LOGARITHM,
    ScalarOp.LOG2: _LOGARITHM,
    ScalarOp.LOG10: _LOGARITHM,
    ScalarOp.LOG1P: _LOGARITHM,
    ScalarOp.ASINH: _LOGARITHM,
    ScalarOp.ACOSH: _LOGARITHM,
    ScalarOp.ATANH: _LOGARITHM,
    ScalarOp.SIN: _TRIGONOMETRY,
    ScalarOp.COS: _TRIGONOMETRY,
    ScalarOp.TAN: _TRIGONOMETRY,
    ScalarOp.ASIN: _INVERSE_TRIGONOMETRY,
    ScalarOp.ACOS: _INVERSE_TRIGONOMETRY,
    ScalarOp.ATAN: _INVERSE_TRIGONOMETRY,
    ScalarOp.ERF: _ERROR_FUNCTION,
    ScalarOp.ERFC: _ERROR_FUNCTION,
    ScalarOp.NDTR: _NORMAL_DISTRIBUTION,
    ScalarOp.RSQRT: _POWER,
}
"""The modules of the definitions of ops with one operand, imported when a kernel needs them.

A definition is the function with the name of its op, in lower case.
"""
_BINARY: Final = {
    ScalarOp.LOGADDEXP: _LOGARITHM,
    ScalarOp.ATAN2: _INVERSE_TRIGONOMETRY,
    ScalarOp.POW: _POWER,
    ScalarOp.FMOD: _DIVISION,
    ScalarOp.MOD: _DIVISION,
    ScalarOp.FLOOR_DIVIDE: _DIVISION,
}
"""The same for two operands. MOD and FLOOR_DIVIDE have functions for integers too, ``integer_mod``."""


class Definition(NamedTuple):
    """The definition of an op: a scalar function of simpler ops.

    Attributes:
        function: the function; it returns the result and, if there is a ``fallback``, whether to call that.
        fallback: the name of the C function for float64 that is exact for all operands; float32 adds an "f".
    """

    function: ScalarFunction
    fallback: str | None


@functools.cache
def definition(op: ScalarOp, dtype: DType) -> Definition:
    """The definition of ``op`` for float32 or float64, and for integers if it is MOD or FLOOR_DIVIDE."""
    fallback: list[str] = []
    module = imported(_UNARY[op] if op in _UNARY else _BINARY[op])
    body: Callable[..., Traced | Guarded]
    body = getattr(module, f"{'integer_' * dtype.is_integer}{op.name.lower()}")

    def code(m: Any, *operands: Any) -> Any:
        result = body(*operands)
        if not isinstance(result, Guarded):
            return result
        fallback.append(result.symbol)
        return result.value, result.needs_fallback

    function = trace(code, (dtype,) * (1 if op in _UNARY else 2))
    return Definition(function, fallback[0] if fallback else None)


def is_guarded(function: ScalarFunction) -> bool:
    """Whether the ops of ``function`` include one whose definition has a fallback."""
    return any(i.dtype.is_floating and has_fallback(i.op, i.dtype) for i in function.instructions)


@functools.cache
def has_fallback(op: ScalarOp, dtype: DType) -> bool:
    """Whether the definition of ``op`` calls a C function for rare operands."""
    if op not in _UNARY and op not in _BINARY:
        return False
    traced = definition(op, float32 if dtype.size == 2 else dtype)
    return traced.fallback is not None or is_guarded(traced.function)
