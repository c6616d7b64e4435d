"""Comparisons, tests and logic: everything that answers bools."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.ops.elementwise import OpFunction, comparison, elementwise, equality, test, truth
from dualflow.ops.samples import booleans, numbers, reals


def _compare(name: str, doc: str, ufunc: np.ufunc, code: Any) -> OpFunction:
    rule = equality if name in ("equal", "not_equal") else comparison
    return elementwise(
        name, doc, dtype=rule, eager=ufunc, code=code, samples=(numbers(-3, 3), numbers(-3, 3))
    )


equal = _compare(
    "equal", """Whether ``x == y``; nan equals nothing.""", np.equal, lambda m, x, y: m.equal(x, y)
)
not_equal = _compare("not_equal", """Whether ``x != y``.""", np.not_equal, lambda m, x, y: m.not_equal(x, y))
less = _compare("less", """Whether ``x < y``.""", np.less, lambda m, x, y: x < y)
less_equal = _compare("less_equal", """Whether ``x <= y``.""", np.less_equal, lambda m, x, y: x <= y)
greater = _compare("greater", """Whether ``x > y``.""", np.greater, lambda m, x, y: x > y)
greater_equal = _compare("greater_equal", """Whether ``x >= y``.""", np.greater_equal, lambda m, x, y: x >= y)


def _test(name: str, doc: str, ufunc: np.ufunc, code: Any) -> OpFunction:
    return elementwise(name, doc, dtype=test, eager=ufunc, code=code, samples=reals(-3, 3))


isnan = _test("isnan", """Whether ``x`` is nan.""", np.isnan, lambda m, x: m.isnan(x))
isinf = _test("isinf", """Whether ``x`` is infinite.""", np.isinf, lambda m, x: m.isinf(x))
isfinite = _test(
    "isfinite", """Whether ``x`` is neither infinite nor nan.""", np.isfinite, lambda m, x: m.isfinite(x)
)


def _logic(name: str, doc: str, ufunc: np.ufunc, code: Any) -> OpFunction:
    domains = (booleans(),) * ufunc.nin
    return elementwise(name, doc, dtype=truth, eager=ufunc, code=code, samples=domains)


logical_and = _logic("logical_and", """Whether both hold.""", np.logical_and, lambda m, x, y: x & y)
logical_or = _logic("logical_or", """Whether either holds.""", np.logical_or, lambda m, x, y: x | y)
logical_xor = _logic("logical_xor", """Whether exactly one holds.""", np.logical_xor, lambda m, x, y: x ^ y)
logical_not = _logic("logical_not", """Whether ``x`` does not hold.""", np.logical_not, lambda m, x: ~x)
