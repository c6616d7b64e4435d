"""Variables in the fast call: current values are read, and only unshared buffers are written in place."""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualflow.core.errors import InternalError


def test_a_variable_is_updated_in_its_own_buffer(fast: Any, heavy: bool) -> None:
    variable = fast.variable(100)
    address = variable._tensor._array.ctypes.data
    call = fast.function(
        "descend", variables=[fast.updates(variable)], outputs=[], result="none", heavy=heavy
    )
    assert call(fast.tensor()) is None
    assert (variable._tensor._array == fast.vector(100) - 0.5 * fast.vector()).all()
    assert variable._tensor._array.ctypes.data == address


def test_a_variable_is_read_as_it_is_now(fast: Any, heavy: bool) -> None:
    variable = fast.variable(3)
    outputs = [fast.vector_spec] * 2
    call = fast.function(
        "multiply", variables=[fast.reads(variable)], outputs=outputs, result="tuple", heavy=heavy
    )
    for start in (3, 4):
        variable._tensor = fast.tensor(start)
        product, _ = call(fast.tensor())
        assert (product._array == fast.vector() * fast.vector(start)).all()


def test_a_shared_variable_may_be_read(fast: Any) -> None:
    variable = fast.variable(3)
    held = variable._tensor, variable._tensor._array
    call = fast.function(
        "multiply", variables=[fast.reads(variable)], outputs=[fast.vector_spec] * 2, result="tuple"
    )
    product, _ = call(fast.tensor())
    assert (product._array == fast.vector() * held[1]).all()


def hold_the_tensor(fast: Any, variable: Any) -> object:
    return variable._tensor


def hold_the_array(fast: Any, variable: Any) -> object:
    return variable._tensor._array


def hold_a_view(fast: Any, variable: Any) -> object:
    return variable._tensor._array[2:]


def hold_a_memoryview(fast: Any, variable: Any) -> object:
    return memoryview(variable._tensor._array)


def make_it_a_view(fast: Any, variable: Any) -> object:
    variable._tensor = fast.Tensor(np.zeros((2, fast.n))[1])
    return None


def make_it_read_only(fast: Any, variable: Any) -> object:
    variable._tensor._array.flags.writeable = False
    return None


def make_it_shorter(fast: Any, variable: Any) -> object:
    variable._tensor = fast.Tensor(np.zeros(fast.n - 1))
    return None


def replace_it_by_another_object(fast: Any, variable: Any) -> object:
    variable._tensor = fast.vector()
    return None


def make_it_empty(fast: Any, variable: Any) -> object:
    del variable._tensor
    return None


PREVENT_IN_PLACE_WRITE = [
    hold_the_tensor,
    hold_the_array,
    hold_a_view,
    hold_a_memoryview,
    make_it_a_view,
    make_it_read_only,
    make_it_shorter,
    replace_it_by_another_object,
    make_it_empty,
]


@pytest.mark.parametrize("prevent", PREVENT_IN_PLACE_WRITE)
def test_a_variable_that_may_not_be_written_goes_to_the_fallback(
    fast: Any, prevent: Callable[[Any, Any], Any]
) -> None:
    variable = fast.variable(100)
    call = fast.function("descend", variables=[fast.updates(variable)], outputs=[], result="none")
    held = prevent(fast, variable)
    before = np.array(getattr(held, "_array", held))
    x = fast.tensor()
    assert call(x) == ("fallback", (x,))
    assert np.array_equal(getattr(held, "_array", held), before)


def test_the_argument_may_be_the_variables_own_tensor(fast: Any) -> None:
    variable = fast.variable(100)
    call = fast.function("descend", variables=[fast.updates(variable)], outputs=[], result="none")
    assert call(variable._tensor)[0] == "fallback"


def test_once_the_reason_is_gone_the_kernel_runs_again(fast: Any) -> None:
    variable = fast.variable(100)
    call = fast.function("descend", variables=[fast.updates(variable)], outputs=[], result="none")
    held = variable._tensor
    assert call(fast.tensor())[0] == "fallback"
    del held
    assert call(fast.tensor()) is None


# While a heavy kernel writes, the tensor is out of its slot.


def test_a_concurrent_call_sees_no_tensor_while_a_kernel_writes(fast: Any) -> None:
    flag = ctypes.c_int64(0)
    variable, other = fast.variable(1), fast.variable(2)
    address = id(variable._tensor)
    fields: dict[str, Any] = {
        "params": [ctypes.addressof(flag)],
        "variables": [fast.updates(variable), fast.reads(other)],
        "heavy": True,
    }
    call, again = fast.function("wait", **fields), fast.function("wait", **fields)
    x = fast.tensor()
    thread = threading.Thread(target=call, args=(x,))
    thread.start()
    while flag.value != 1:
        pass
    state = (
        hasattr(variable, "_tensor"),
        id(variable._substitute),
        variable._borrower,
        hasattr(other, "_substitute"),
    )
    result = again(x)  # another call finds no tensor, and goes to the fallback
    flag.value = 2
    number = thread.ident
    thread.join()
    assert state == (False, address, number, False)
    assert result == ("fallback", (x,))
    assert id(variable._tensor) == address
    assert not hasattr(variable, "_substitute")
    assert not hasattr(variable, "_borrower")


@pytest.mark.parametrize("status", [0, 7])
def test_the_tensor_returns_to_the_variable_after_success_and_failure(
    fast: Any, heavy: bool, status: int
) -> None:
    variable = fast.variable(1)
    call = fast.function(
        "fail",
        params=[fast.n, status],
        variables=[fast.updates(variable)],
        on_error=lambda *_: "failed",
        heavy=heavy,
    )
    tensor = weakref.ref(variable._tensor)
    for _ in range(3):
        call(fast.tensor())
        assert tensor() is variable._tensor
        assert not hasattr(variable, "_substitute")
        assert sys.getrefcount(variable._tensor) == sys.getrefcount(fast.tensor()) + 1


def test_the_slots_of_a_variable_must_be_known(fast: Any) -> None:
    with pytest.raises(InternalError, match="has variables, but no offsets of their slots"):
        fast.function("descend", variables=[fast.updates(fast.variable())], slots=None)
