"""Comparisons, tests such as isnan, and logic: the elementwise ops with bool results."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.ops.elementwise import (
    BinaryFunction,
    DTypeRule,
    UnaryFunction,
    comparison,
    elementwise,
    equality,
    test,
)
from dualflow.ops.samples import Domain, numbers, reals


def _compare(
    name: str, doc: str, ufunc: np.ufunc, code: Any, result: str, dtype: DTypeRule = comparison
) -> BinaryFunction:
    return elementwise(
        name,
        doc,
        dtype=dtype,
        eager=ufunc,
        code=code,
        samples=(numbers(-3, 3), numbers(-3, 3)),
        example=(f"df.{name}([1, 2, 3], 2)", result),
    )


equal = _compare(
    "equal",
    """Whether ``x == y``; nan equals nothing.""",
    np.equal,
    lambda m, x, y: m.equal(x, y),
    "[False, True, False]",
    equality,
)
not_equal = _compare(
    "not_equal",
    """Whether ``x != y``.""",
    np.not_equal,
    lambda m, x, y: m.not_equal(x, y),
    "[True, False, True]",
    equality,
)
less = _compare("less", """Whether ``x < y``.""", np.less, lambda m, x, y: x < y, "[True, False, False]")
less_equal = _compare(
    "less_equal", """Whether ``x <= y``.""", np.less_equal, lambda m, x, y: x <= y, "[True, True, False]"
)
greater = _compare(
    "greater", """Whether ``x > y``.""", np.greater, lambda m, x, y: x > y, "[False, False, True]"
)
greater_equal = _compare(
    "greater_equal",
    """Whether ``x >= y``.""",
    np.greater_equal,
    lambda m, x, y: x >= y,
    "[False, True, True]",
)


def _test(name: str, doc: str, ufunc: np.ufunc, code: Any, result: str) -> UnaryFunction:
    return elementwise(
        name,
        doc,
        dtype=test,
        eager=ufunc,
        code=code,
        samples=reals(-3, 3),
        example=(f'df.math.{name}([0.0, float("inf"), float("nan")])', result),
    )


isnan = _test("isnan", """Whether ``x`` is nan.""", np.isnan, lambda m, x: m.isnan(x), "[False, False, True]")
isinf = _test(
    "isinf", """Whether ``x`` is infinite.""", np.isinf, lambda m, x: m.isinf(x), "[False, True, False]"
)
isfinite = _test(
    "isfinite",
    """Whether ``x`` is neither infinite nor nan.""",
    np.isfinite,
    lambda m, x: m.isfinite(x),
    "[True, False, False]",
)


def _logic(name: str, doc: str, ufunc: np.ufunc, code: Any, result: str) -> Any:
    def of_truths(m: Any, *inputs: Any) -> Any:
        return code(*[x if m.dtype(x).is_bool else m.not_equal(x, 0) for x in inputs])

    domain = Domain(-2, 2, "bi")
    second = ", [False, True, True]" if ufunc.nin == 2 else ""
    return elementwise(
        name,
        doc,
        dtype=comparison,
        eager=ufunc,
        code=of_truths,
        samples=(domain, domain) if ufunc.nin == 2 else domain,
        example=(f"df.{name}([False, False, True]{second})", result),
    )


logical_and: BinaryFunction = _logic(
    "logical_and",
    """Whether both are true (not 0).""",
    np.logical_and,
    lambda x, y: x & y,
    "[False, False, True]",
)
logical_or: BinaryFunction = _logic(
    "logical_or",
    """Whether at least one is true (not 0).""",
    np.logical_or,
    lambda x, y: x | y,
    "[False, True, True]",
)
logical_xor: BinaryFunction = _logic(
    "logical_xor",
    """Whether exactly one is true (not 0).""",
    np.logical_xor,
    lambda x, y: x ^ y,
    "[False, True, False]",
)
logical_not: UnaryFunction = _logic(
    "logical_not",
    """Whether ``x`` is false (0).""",
    np.logical_not,
    lambda x: ~x,
    "[True, True, False]",
)
