"""The block cache for large outputs: freed blocks are reused up to a limit, and never shared."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.llvm.runtime import block_allocator

pytestmark = pytest.mark.skipif(
    bool(block_allocator.unavailable_reason()),
    reason=f"no memory is kept: {block_allocator.unavailable_reason()}",
)

MIB = 1 << 20
KIB = 1 << 10
PLACES = 32


class Policy:
    """The policy's functions over kept blocks of its own."""

    def __init__(self, most_kept: int = 64 * MIB) -> None:
        self.state = ctypes.create_string_buffer(24 + 16 * PLACES)
        self.most_kept = most_kept
        self._words()[2] = most_kept
        library = block_allocator.library()
        pointer, size = ctypes.c_void_p, ctypes.c_size_t

        def function(name: str, result: Any, *args: Any) -> Callable[..., Any]:
            routine = ctypes.CFUNCTYPE(result, pointer, *args)(library.address(f"df_block_{name}"))
            return lambda *call_args: routine(ctypes.addressof(self.state), *call_args)

        self.malloc = function("malloc", pointer, size)
        self.calloc = function("calloc", pointer, size, size)
        self.realloc = function("realloc", pointer, pointer, size)
        self.free = function("free", None, pointer, size)

    def _words(self) -> Any:
        return (ctypes.c_int64 * 3).from_buffer(self.state)

    @property
    def kept(self) -> int:
        """The bytes that are kept."""
        return int(self._words()[1])

    def lock(self, value: int) -> None:
        """What the lock holds."""
        ctypes.c_int32.from_buffer(self.state).value = value

    def clear(self) -> None:
        """Give all back."""
        for address in [self.malloc(size) for size in self.sizes]:
            ctypes.CDLL(None).free(ctypes.c_void_p(address))

    @property
    def sizes(self) -> list[int]:
        """The bytes of each block that is kept."""
        places = (ctypes.c_int64 * (2 * PLACES)).from_buffer(self.state, 24)
        return [size for size in places[1::2] if size]


@pytest.fixture
def policy() -> Any:
    opened = Policy()
    yield opened
    opened.clear()
    assert opened.kept == 0


def test_freed_memory_is_the_next_block_of_its_size(policy: Policy) -> None:
    address = policy.malloc(6 * MIB)
    policy.free(address, 6 * MIB)
    assert policy.kept == 6 * MIB
    assert policy.malloc(6 * MIB) == address
    assert policy.kept == 0
    policy.free(address, 6 * MIB)


def test_sizes_of_huge_blocks_count_in_whole_huge_pages(policy: Policy) -> None:
    address = policy.malloc(5 * MIB + 1)
    policy.free(address, 5 * MIB + 1)
    assert policy.malloc(5 * MIB + 9) == address
    policy.free(address, 5 * MIB + 9)
    other = policy.malloc(8 * MIB)
    assert other != address
    policy.free(other, 8 * MIB)


def test_huge_blocks_begin_where_a_huge_page_does(policy: Policy) -> None:
    address = policy.malloc(4 * MIB)
    assert address % (2 * MIB) == 0
    policy.free(address, 4 * MIB)


def test_a_block_is_given_once(policy: Policy) -> None:
    first = policy.malloc(4 * MIB)
    policy.free(first, 4 * MIB)
    taken = [policy.malloc(4 * MIB) for _ in range(3)]
    assert len(set(taken)) == 3
    for address in taken:
        policy.free(address, 4 * MIB)


def test_small_blocks_are_left_to_c(policy: Policy) -> None:
    address = policy.malloc(64 * KIB - 1)
    policy.free(address, 64 * KIB - 1)
    assert policy.kept == 0


def test_blocks_begin_where_a_cache_line_does(policy: Policy) -> None:
    address = policy.malloc(100 * KIB)
    assert address % 64 == 0
    policy.free(address, 100 * KIB)
    assert policy.malloc(100 * KIB - 63) == address
    policy.free(address, 100 * KIB - 63)


def test_kept_memory_stays_within_the_limit(policy: Policy) -> None:
    taken = [policy.malloc(20 * MIB) for _ in range(5)]
    for address in taken:
        policy.free(address, 20 * MIB)
        assert policy.kept <= policy.most_kept
    assert policy.kept == 60 * MIB


def test_the_oldest_blocks_go_first(policy: Policy) -> None:
    sizes = [4 * MIB, 6 * MIB, 48 * MIB, 10 * MIB]
    for size in sizes:
        policy.free(policy.malloc(size), size)
    assert sorted(policy.sizes) == [6 * MIB, 10 * MIB, 48 * MIB]


def test_the_number_of_kept_blocks_is_limited(policy: Policy) -> None:
    for address in [policy.malloc(112 * KIB) for _ in range(PLACES + 4)]:
        policy.free(address, 112 * KIB)
    assert policy.kept == PLACES * 112 * KIB


@given(st.integers(64 * KIB, 32 * MIB))
def test_a_block_is_at_most_a_quarter_or_a_huge_page_larger_than_its_array(nbytes: int) -> None:
    policy = Policy()
    policy.free(policy.malloc(nbytes), nbytes)
    (kept,) = policy.sizes
    assert 0 <= kept - nbytes < max(nbytes // 4 + 1, 2 * MIB if nbytes > 3 * MIB else 0)
    policy.clear()


def test_arrays_of_similar_sizes_share_a_block(policy: Policy) -> None:
    first = policy.malloc(336 * KIB)
    policy.free(first, 336 * KIB)
    for kib in (384, 321, 350):
        assert policy.malloc(kib * KIB) == first
        policy.free(first, kib * KIB)
    larger = policy.malloc(385 * KIB)
    assert larger != first
    policy.free(larger, 385 * KIB)


def test_a_block_above_the_limit_is_not_kept(policy: Policy) -> None:
    policy.free(policy.malloc(66 * MIB), 66 * MIB)
    assert policy.kept == 0


def test_where_the_lock_is_taken_nothing_waits(policy: Policy) -> None:
    address = policy.malloc(4 * MIB)
    policy.free(address, 4 * MIB)
    policy.lock(1)
    other = policy.malloc(4 * MIB)
    assert other != address
    policy.free(other, 4 * MIB)
    assert policy.kept == 4 * MIB
    policy.lock(0)


def test_a_resized_block_keeps_its_elements_and_is_kept(policy: Policy) -> None:
    address = policy.malloc(4 * MIB)
    ctypes.memset(address, 7, 4 * MIB)
    address = policy.realloc(address, 9 * MIB)
    assert ctypes.string_at(address, 4 * MIB) == b"\7" * (4 * MIB)
    policy.free(address, 9 * MIB)
    again = policy.malloc(10 * MIB)
    ctypes.memset(again, 1, 10 * MIB)
    assert again == address
    policy.free(again, 10 * MIB)


def test_zeroed_memory_is_zero(policy: Policy) -> None:
    address = policy.malloc(4 * MIB)
    ctypes.memset(address, 255, 4 * MIB)
    policy.free(address, 4 * MIB)
    zeros = policy.calloc(MIB, 4)
    assert not np.frombuffer(ctypes.string_at(zeros, 4 * MIB), np.uint8).any()
    policy.free(zeros, 4 * MIB)


@pytest.mark.parametrize("nbytes", [1 << 50, (1 << 60) - 1, (1 << 63) + 1])
def test_more_than_there_is_fails_as_c_does(policy: Policy, nbytes: int) -> None:
    assert policy.malloc(nbytes) is None


def test_threads_never_share_a_block(policy: Policy) -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            address = policy.malloc(4 * MIB)
            cell = ctypes.c_int64.from_address(address)
            cell.value = number
            os.sched_yield()
            if cell.value != number:
                wrong.append(number)
            policy.free(address, 4 * MIB)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def policy_of(tensor: Any) -> str:
    """The name of the policy that has an array's memory."""
    from_array: Callable[[Any], str] = np._core.multiarray.get_handler_name
    return from_array(tensor._array)


@pytest.fixture(scope="module")
def doubled() -> Any:
    return df.function(lambda x: x * 2.0)


def test_large_outputs_alone_have_kept_memory(doubled: Any) -> None:
    small, large = df.ones([1000]), df.ones([MIB + 3])
    for x in (small, large):
        doubled(x)  # the first call of a trace goes another way
    assert policy_of(doubled(large)) == "dualflow"
    assert policy_of(doubled(small)) == "default_allocator"


@pytest.mark.parametrize(
    "f", [lambda x: df.linalg.qr(x)[1] + 1.0, lambda x: df.linalg.cholesky(x)], ids=["output", "host call"]
)
def test_functions_with_host_calls_have_kept_memory(doubled: Any, f: Any) -> None:
    doubled(doubled(df.ones([MIB])))  # the allocator is compiled
    result = df.function(f)(df.eye(200))
    assert policy_of(result) == "dualflow"


def test_numpy_kernels_of_eager_ops_have_kept_memory(doubled: Any) -> None:
    doubled(doubled(df.ones([MIB])))
    assert policy_of(df.linalg.inv(df.eye(200))) == "dualflow"
    assert np._core.multiarray.get_handler_name(np.ones(MIB)) == "default_allocator"


def test_null_is_no_block_to_keep(policy: Policy) -> None:
    """NumPy's sorts free null if they needed no buffer, with the size that it would have had."""
    policy.free(None, MIB)
    assert policy.kept == 0
    address = policy.malloc(MIB)
    assert address
    policy.free(address, MIB)


def test_a_long_sort_leaves_memory_for_the_next_op(doubled: Any) -> None:
    doubled(doubled(df.ones([MIB])))
    for size in (1 << 14, 1 << 16, 1 << 18):
        x = np.random.default_rng(size).normal(size=(2, size))
        np.testing.assert_array_equal(df.argsort(x), np.argsort(x, kind="stable"))


def test_elements_of_reused_memory_are_the_new_ones(doubled: Any) -> None:
    for start in range(3):
        x = df.constant(np.arange(MIB + 3, dtype=np.float32) + start)
        np.testing.assert_array_equal(doubled(x).numpy(), 2 * (np.arange(MIB + 3, dtype=np.float32) + start))


def test_an_array_outlives_its_function() -> None:
    function = df.function(lambda x: x + 1.0)
    x = df.zeros([MIB + 5])
    function(x)
    array = function(x).numpy()
    del function
    assert array.sum() == MIB + 5
    copied = array.copy()
    assert np._core.multiarray.get_handler_name(copied) == "default_allocator"
