"""Parameter tables that calls of symbolic sizes keep for later calls of equal sizes."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualflow.backends.llvm.program_image import OTHER_SIZES
from dualflow.backends.llvm.runtime import fastcall
from dualflow.backends.llvm.runtime.call_memory import GrowingCallMemory

if TYPE_CHECKING:
    from tests.backends.llvm.fastcall.conftest import Fast, KeptBytes

VECTOR = fastcall.ArraySpec(np.dtype(np.float64), (-1,))
"""A vector whose length is the first parameter."""
OTHER, TOO_LARGE = 5, 6
"""The lengths that another program serves, and for which the call fails."""
Words = Any
Kernel = Callable[[Words], None]


def words(address: int, count: int = 3) -> Words:
    """The first words of a parameter table."""
    return (ctypes.c_int64 * count).from_address(address)


def doubled_length(params: Words, status: Words) -> None:
    """Size code: the second parameter is twice the first one."""
    params[1] = 2 * params[0]
    status[0] = {OTHER: OTHER_SIZES, TOO_LARGE: 7}.get(params[0], 0)


def function(fast: Fast, kernel: Kernel, sizes: Any = doubled_length, extra: int = 0, **fields: Any) -> Any:
    """A call of ``kernel``, which gets the parameter table; its result has the length of its argument.

    The result's length is that of the second parameter, which the function ``sizes`` computes.
    """
    run = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3)
    if fields.get("heavy"):
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)
    entry = run(lambda buffers, params, status: kernel(words(params)))
    size_code = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 2)(
        lambda params, status: sizes(words(params), words(status, 1))
    )
    return fast.function(
        "nothing",
        kernel=ctypes.cast(entry, ctypes.c_void_p).value,
        inputs=[VECTOR],
        outputs=[fastcall.ArraySpec(np.dtype(np.float64), (-2,))],
        params=[0, 0, 8, *[0] * extra],
        arena=GrowingCallMemory(),
        arena_place=2,
        sizes=ctypes.cast(size_code, ctypes.c_void_p).value,
        keep=(entry, size_code),
        **fields,
    )


def length(call: Any, fast: Fast, n: int) -> Any:
    """Half the length of the result for a vector of ``n`` elements, or the exception of the call."""
    try:
        result = call(fast.Tensor(np.zeros(n)))
    except fast.KernelFailed as error:
        return error.args[0]
    return "fallback" if type(result) is tuple else len(result._array) / 2


@given(st.lists(st.sampled_from([0, 1, 2, OTHER, TOO_LARGE, 40_000]), max_size=12))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_size_code_runs_for_sizes_other_than_the_latest_served_ones(fast: Fast, lengths: list[int]) -> None:
    computed: list[int] = []

    def sizes(params: Words, status: Words) -> None:
        computed.append(params[0])
        doubled_length(params, status)

    call, served, expected = function(fast, lambda params: None, sizes), None, []
    for n in lengths:
        if n != served:
            expected.append(n)
        served = n if n not in (OTHER, TOO_LARGE) else served
        assert length(call, fast, n) == {OTHER: "fallback", TOO_LARGE: 7}.get(n, n)
    assert computed == expected


def test_a_call_within_a_call_leaves_the_table_of_the_outer_call(fast: Fast, heavy: bool) -> None:
    tables: list[list[int]] = []

    def kernel(params: Words) -> None:
        if params[0] == 3:
            tables.append([length(call, fast, n) for n in (4, 3_000, 4, OTHER, TOO_LARGE, 1)])
        tables.append(list(params))

    call = function(fast, kernel, heavy=heavy)
    for _ in range(3):
        tables.clear()
        assert length(call, fast, 3) == 3
        inner = [[n, 2 * n, 8] for n in (4, 3_000, 4, 1)]
        assert tables == [*inner, [4, 3_000, 4, "fallback", 7, 1], [3, 6, 8]]


def test_calls_of_equal_and_other_sizes_may_run_at_the_same_time(fast: Fast) -> None:
    """Each call ends after the next one, which another thread starts from its kernel."""
    lengths, tables = [10, 10, 11, 10, 12, 12, 10], []

    def kernel(params: Words) -> None:
        before, n = list(params), lengths[len(tables)]
        tables.append(before)
        if len(tables) < len(lengths):
            inner = threading.Thread(target=length, args=(call, fast, lengths[len(tables)]))
            inner.start()
            inner.join()
        tables.append([before == list(params) == [n, 2 * n, 8]])

    call = function(fast, kernel, heavy=True)
    assert length(call, fast, lengths[0]) == lengths[0]
    assert tables[len(lengths) :] == [[True]] * len(lengths)


def test_a_fork_within_calls_has_the_tables(fast: Fast) -> None:
    ended: list[int] = []

    def kernel(params: Words) -> None:
        if params[0] != 3 or ended:
            return
        ended.append(-1)
        child = os.fork()
        if not child:
            fits = [length(call, fast, n) for n in (3, 4, 3, 3_000)] == [3, 4, 3, 3_000] and params[0] == 3
            os._exit(0 if fits else 1)
        ended[0] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    call = function(fast, kernel)
    assert length(call, fast, 3) == 3
    assert ended == [0]


def test_tables_are_freed_with_the_function(fast: Fast, kept_bytes: KeptBytes) -> None:
    def use() -> None:
        call = function(fast, lambda params: None, extra=100_000)
        for n in (1, 2, OTHER, 3, TOO_LARGE, 1):
            length(call, fast, n)

    assert kept_bytes(use) < 1 << 16
