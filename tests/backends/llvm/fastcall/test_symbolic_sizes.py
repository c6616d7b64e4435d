"""Calls whose sizes the entry code reads from the arguments: dims, outputs, the arena."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dualflow.backends.llvm.runtime import fastcall
from dualflow.backends.llvm.runtime.call_memory import GrowingCallMemory

if TYPE_CHECKING:
    from tests.backends.llvm.fastcall.conftest import Fast, KeptBytes

DYNAMIC_VECTOR = fastcall.ArraySpec(np.dtype(np.float64), (-1,))
"""A vector whose length is the first parameter."""


def copying(fast: Fast, factor: int = 1, **fields: Any) -> Any:
    """Returns a copy of a vector of any length, through an arena that is ``factor`` times as large."""
    return fast.function(
        "through_arena",
        inputs=[DYNAMIC_VECTOR],
        outputs=[DYNAMIC_VECTOR],
        params=[0, 0, factor],
        arena=GrowingCallMemory(),
        arena_place=1,
        sizes=fast.library.address("sizes"),
        **fields,
    )


@pytest.mark.parametrize("factor", [1, 3000])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 40_000])
def test_outputs_have_the_sizes_of_the_call(fast: Fast, heavy: bool, n: int, factor: int) -> None:
    call = copying(fast, factor if n < 100 else 1, heavy=heavy)
    for length in (n, 3, n):
        x = np.random.default_rng(length).standard_normal(length)
        result = call(fast.Tensor(x))
        assert np.array_equal(result._array, x)
        assert result._array is not x


def test_the_parameters_of_the_graph_stay_as_they_are(fast: Fast) -> None:
    params = np.array([0, 0, 1])
    call = fast.function(
        "through_arena",
        inputs=[DYNAMIC_VECTOR],
        outputs=[DYNAMIC_VECTOR],
        params=params,
        arena=GrowingCallMemory(),
        arena_place=1,
        sizes=fast.library.address("sizes"),
    )
    call(fast.tensor())
    assert params.tolist() == [0, 0, 1]


@pytest.mark.parametrize("array", [np.zeros((2, 2)), np.zeros(3, np.float32), np.zeros(8)[::2], np.zeros(())])
def test_arrays_of_another_rank_dtype_or_layout_go_to_the_fallback(fast: Fast, array: Any) -> None:
    x = fast.Tensor(array)
    assert copying(fast)(x) == ("fallback", (x,))


def test_sizes_that_another_program_serves_go_to_the_fallback(fast: Fast) -> None:
    x = fast.Tensor(np.zeros(5))
    assert copying(fast)(x) == ("fallback", (x,))


def test_sizes_that_fail_call_on_error_before_anything_runs(fast: Fast) -> None:
    x = fast.Tensor(np.zeros(6))
    with pytest.raises(fast.KernelFailed) as caught:
        copying(fast)(x)
    assert caught.value.args == (5, x)


def test_static_axes_of_a_dynamic_array_are_checked(fast: Fast) -> None:
    matrix = fastcall.ArraySpec(np.dtype(np.float64), (-1, 3))
    call = fast.function(
        "nothing",
        inputs=[matrix],
        outputs=[fastcall.ArraySpec(np.dtype(np.float32), (2, -1))],
        params=[0, 0, 1],
        arena=GrowingCallMemory(),
        arena_place=1,
        sizes=fast.library.address("sizes"),
    )
    assert call(fast.Tensor(np.zeros((4, 3))))._array.shape == (2, 4)
    x = fast.Tensor(np.zeros((4, 2)))
    assert call(x) == ("fallback", (x,))


def test_an_arena_is_kept_for_smaller_calls_and_replaced_for_larger_ones(fast: Fast) -> None:
    memory = GrowingCallMemory()
    call = fast.function(
        "through_arena",
        inputs=[DYNAMIC_VECTOR],
        outputs=[DYNAMIC_VECTOR],
        params=[0, 0, 3000],
        arena=memory,
        arena_place=1,
        sizes=fast.library.address("sizes"),
    )
    kept = []
    for n in (2, 1, 4, 3):
        call(fast.Tensor(np.ones(n)))
        kept.append(int(memory._cells[0]))
    assert kept[0] == kept[1]
    assert kept[2] == kept[3] != 0


def test_threads_have_an_arena_each(fast: Fast) -> None:
    call = copying(fast, 20, heavy=True)
    vectors = [np.random.default_rng(n).standard_normal(n) for n in (1000, 3000, 20_000)]
    wrong: list[int] = []

    def repeat(first: int) -> None:
        for i in range(first, first + 60):
            x = vectors[i % 3]
            if not np.array_equal(call(fast.Tensor(x))._array, x):
                wrong.append(i)

    threads = [threading.Thread(target=repeat, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_arena_is_freed_with_the_function(fast: Fast, kept_bytes: KeptBytes) -> None:
    def use() -> None:
        call = copying(fast, 10_000)
        for n in (1, 2, 100, 3):
            call(fast.Tensor(np.ones(n)))

    assert kept_bytes(use) < 1 << 16
