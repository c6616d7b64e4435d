"""``DefinedOps``: a method for each scalar op that has a definition in simpler ops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from dualflow.scalar.ir import ScalarOp


def _unary(op: ScalarOp) -> Callable[[DefinedOps, Any], Any]:
    def method(self: DefinedOps, x: Any) -> Any:
        return self.defined(op, x)

    return method


def _binary(op: ScalarOp) -> Callable[[DefinedOps, Any, Any], Any]:
    def method(self: DefinedOps, x: Any, y: Any) -> Any:
        return self.defined(op, x, y)

    return method


class DefinedOps(ABC):
    """A base of namespaces of scalar ops: the ops of ``maths/definitions.py``, each by its name.

    A namespace implements :meth:`defined`, and overrides the ops that it computes in another way for some
    dtypes.
    """

    __slots__ = ()

    @abstractmethod
    def defined(self, op: ScalarOp, *operands: Any) -> Any:
        """The result of ``op`` for operands of one dtype."""

    exp, exp2, expm1, sigmoid = map(_unary, (ScalarOp.EXP, ScalarOp.EXP2, ScalarOp.EXPM1, ScalarOp.SIGMOID))
    log, log2, log10, log1p = map(_unary, (ScalarOp.LOG, ScalarOp.LOG2, ScalarOp.LOG10, ScalarOp.LOG1P))
    sin, cos, tan = map(_unary, (ScalarOp.SIN, ScalarOp.COS, ScalarOp.TAN))
    asin, acos, atan = map(_unary, (ScalarOp.ASIN, ScalarOp.ACOS, ScalarOp.ATAN))
    sinh, cosh, tanh = map(_unary, (ScalarOp.SINH, ScalarOp.COSH, ScalarOp.TANH))
    asinh, acosh, atanh = map(_unary, (ScalarOp.ASINH, ScalarOp.ACOSH, ScalarOp.ATANH))
    erf, erfc, ndtr, rsqrt = map(_unary, (ScalarOp.ERF, ScalarOp.ERFC, ScalarOp.NDTR, ScalarOp.RSQRT))
    pow, mod, floor_divide = map(_binary, (ScalarOp.POW, ScalarOp.MOD, ScalarOp.FLOOR_DIVIDE))
    logaddexp, atan2, fmod = map(_binary, (ScalarOp.LOGADDEXP, ScalarOp.ATAN2, ScalarOp.FMOD))
