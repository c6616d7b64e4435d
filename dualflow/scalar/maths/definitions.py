"""Definitions of scalar ops, such as EXP, as scalar functions of simpler ops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from dualflow.core.dtypes import DType, float32
from dualflow.core.records import NamedTuple
from dualflow.scalar.ir import ScalarFunction, ScalarOp
from dualflow.scalar.maths import (
    division,
    error_function,
    exponential,
    inverse_trigonometry,
    logarithm,
    normal_distribution,
    power,
    trigonometry,
)
from dualflow.scalar.maths.floating import Guarded
from dualflow.scalar.tracing import Traced, trace

_UNARY: Final[dict[ScalarOp, Callable[[Traced], Traced | Guarded]]] = {
    ScalarOp.EXP: exponential.exp,
    ScalarOp.EXP2: exponential.exp2,
    ScalarOp.EXPM1: exponential.expm1,
    ScalarOp.SIGMOID: exponential.sigmoid,
    ScalarOp.SINH: exponential.sinh,
    ScalarOp.COSH: exponential.cosh,
    ScalarOp.TANH: exponential.tanh,
    ScalarOp.LOG: logarithm.log,
    ScalarOp.LOG2: logarithm.log2,
    ScalarOp.LOG10: logarithm.log10,
    ScalarOp.LOG1P: logarithm.log1p,
    ScalarOp.ASINH: logarithm.asinh,
    ScalarOp.ACOSH: logarithm.acosh,
    ScalarOp.ATANH: logarithm.atanh,
    ScalarOp.SIN: trigonometry.sin,
    ScalarOp.COS: trigonometry.cos,
    ScalarOp.TAN: trigonometry.tan,
    ScalarOp.ASIN: inverse_trigonometry.asin,
    ScalarOp.ACOS: inverse_trigonometry.acos,
    ScalarOp.ATAN: inverse_trigonometry.atan,
    ScalarOp.ERF: error_function.erf,
    ScalarOp.ERFC: error_function.erfc,
    ScalarOp.NDTR: normal_distribution.ndtr,
    ScalarOp.RSQRT: power.rsqrt,
}
_BINARY: Final[dict[ScalarOp, Callable[[Traced, Traced], Traced | Guarded]]] = {
    ScalarOp.LOGADDEXP: logarithm.logaddexp,
    ScalarOp.ATAN2: inverse_trigonometry.atan2,
    ScalarOp.POW: power.pow,
    ScalarOp.FMOD: division.fmod,
    ScalarOp.MOD: division.mod,
    ScalarOp.FLOOR_DIVIDE: division.floor_divide,
}
_INTEGER_BINARY: Final[dict[ScalarOp, Callable[[Traced, Traced], Traced]]] = {
    ScalarOp.MOD: division.integer_mod,
    ScalarOp.FLOOR_DIVIDE: division.integer_floor_divide,
}


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
    body: Callable[..., Traced | Guarded]
    body = _INTEGER_BINARY[op] if dtype.is_integer else _UNARY[op] if op in _UNARY else _BINARY[op]

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
