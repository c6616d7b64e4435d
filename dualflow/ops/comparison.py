"""Comparisons, tests and logic: everything that answers bools."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.ops.elementwise import OpFunction, comparison, elementwise, test
from dualflow.ops.samples import Domain, numbers, reals


def _compare(name: str, doc: str, ufunc: np.ufunc, code: Any) -> OpFunction:
    return elementwise(
        name, doc, dtype=comparison, eager=ufunc, code=code, samples=(numbers(-3, 3), numbers(-3, 3))
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
    def of_truths(m: Any, *inputs: Any) -> Any:
        return code(*[x if m.dtype(x).is_bool else m.not_equal(x, 0) for x in inputs])

    domains = (Domain(-2, 2, "bi"),) * ufunc.nin
    return elementwise(name, doc, dtype=comparison, eager=ufunc, code=of_truths, samples=domains)


logical_and = _logic(
    "logical_and", """Whether both hold, or are not 0.""", np.logical_and, lambda x, y: x & y
)
logical_or = _logic("logical_or", """Whether either holds, or is not 0.""", np.logical_or, lambda x, y: x | y)
logical_xor = _logic(
    "logical_xor", """Whether exactly one holds, or is not 0.""", np.logical_xor, lambda x, y: x ^ y
)
logical_not = _logic("logical_not", """Whether ``x`` does not hold, or is 0.""", np.logical_not, lambda x: ~x)
