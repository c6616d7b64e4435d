"""Size code: its routine computes what ``SizeMaths`` computes on ints."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualflow.backends.llvm.parameter_table import ParameterTable
from dualflow.backends.llvm.runtime import checked_memory, jit
from dualflow.backends.llvm.size_code import SizeCode, SizeOp
from dualflow.backends.llvm.steps import COMPUTE_SIZES, SIZE_CODE, driver
from dualflow.backends.runtime import switches
from dualflow.sizes.symbolic_sizes import SymInt, evaluate_size, size_function, size_variable, variable_of

FUNCTIONS = [op.name.lower() for op in SizeOp if SizeOp.QUOTIENT <= op <= SizeOp.BROADCAST_STRIDE]
VARIABLES = [size_variable() for _ in range(3)]
NUMBERS = st.integers(-5, 5) | st.integers(-100, 100)  # products of eight are below 1 << 63
LIBRARY = jit.compile_sources([driver()], checked_memory.symbols() if switches.checked_side() else {})


def expressions() -> st.SearchStrategy[Any]:
    def larger(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.builds(lambda x, y: x + y, parts, parts),
            st.builds(lambda x, y: x - y, parts, parts),
            st.builds(lambda x, y: x * y, parts, parts),
            st.builds(size_function, st.sampled_from(FUNCTIONS), parts, parts),
        )

    return st.recursive(st.sampled_from(VARIABLES) | NUMBERS, larger, max_leaves=8)


def run(code: SizeCode, numbers: list[int]) -> tuple[list[int], int]:
    """The parameters after the code has run for variables of these numbers, and the status."""
    params = np.array([0 if isinstance(x, SymInt) else x for x in code.table.params], np.int64)
    for variable, number in zip(VARIABLES, numbers, strict=True):
        params[code.table.size_param(variable_of(variable))] = number
    words, status = code.array(), np.zeros(1, np.int64)
    params[SIZE_CODE] = words.ctypes.data
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(LIBRARY.address(COMPUTE_SIZES))
    function(params.ctypes.data, status.ctypes.data)
    return params.tolist(), int(status[0])


def new_table(sizes: list[Any]) -> tuple[ParameterTable, int]:
    """A table with a place for each variable, and ``sizes`` from the returned index on."""
    table = ParameterTable()
    for variable in VARIABLES:
        table.size_param(variable_of(variable))
    return table, table.extend(sizes)


@given(st.lists(expressions(), min_size=1, max_size=4), st.lists(NUMBERS, min_size=3, max_size=3))
@settings(deadline=None)
def test_parameters_are_the_values_of_their_expressions(sizes: list[Any], numbers: list[int]) -> None:
    table, first = new_table([*sizes, *sizes])
    bound = {variable_of(v): n for v, n in zip(VARIABLES, numbers, strict=True)}
    code = SizeCode(table)
    code.compute_parameters()
    params, status = run(code, numbers)
    values = [evaluate_size(size, bound) for size in sizes]
    assert params[first : first + 2 * len(sizes)] == values * 2
    assert status == 0


@pytest.mark.parametrize(
    ("op", "x", "y", "fails"),
    [
        (SizeOp.FAIL_IF_EQUAL, 3, 3, True),
        (SizeOp.FAIL_IF_EQUAL, 3, 4, False),
        (SizeOp.FAIL_UNLESS_EQUAL, 3, 4, True),
        (SizeOp.FAIL_UNLESS_EQUAL, 3, 3, False),
        (SizeOp.FAIL_IF_LESS, -1, 0, True),
        (SizeOp.FAIL_IF_LESS, 0, 0, False),
        (SizeOp.FAIL_UNLESS_LESS, 0, 0, True),
        (SizeOp.FAIL_UNLESS_LESS, -1, 0, False),
    ],
)
def test_the_first_check_that_fails_is_the_status(op: SizeOp, x: int, y: int, fails: bool) -> None:
    table, _ = new_table([])
    code = SizeCode(table)
    code.check(op, 7, code.value(VARIABLES[0]), code.value(VARIABLES[1]))
    code.check(SizeOp.FAIL_IF_EQUAL, 8, code.constant(1), code.constant(1))
    assert run(code, [x, y, 0])[1] == (7 if fails else 8)


def test_the_number_of_elements_does_not_overflow() -> None:
    table, _ = new_table([])
    code = SizeCode(table)
    many, limit = code.elements([VARIABLES[0]] * 3), code.elements([1 << 46])
    code.check(SizeOp.FAIL_IF_MORE_ELEMENTS, 7, many, limit)
    assert [run(code, [n, 0, 0])[1] for n in (0, 1 << 15, 1 << 16, 1 << 62)] == [0, 0, 7, 7]
