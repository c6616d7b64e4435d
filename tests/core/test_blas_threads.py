"""The thread count of NumPy's BLAS: 1 while small matrices are factored, then restored."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from dualflow.core import blas, blas_threads


@pytest.fixture
def number() -> Iterator[Callable[[], int]]:
    """A function that returns the number of threads, which is 2 before the test."""
    library = blas.find()
    if library is None or not library.set_num_threads or not library.get_num_threads:
        pytest.skip("NumPy's BLAS has no number of threads to set")
    get = ctypes.CFUNCTYPE(ctypes.c_int)(library.get_num_threads)
    put = ctypes.CFUNCTYPE(None, ctypes.c_int)(library.set_num_threads)
    before = get()
    put(2)
    try:
        yield get
    finally:
        put(before)


SMALL, LARGE = blas_threads.ALONE - 1, blas_threads.ALONE


def test_small_matrices_have_one_thread(number: Callable[[], int]) -> None:
    with blas_threads.for_matrices(SMALL):
        assert number() == 1
    assert number() == 2
    with blas_threads.for_matrices(LARGE):
        assert number() == 2


def test_an_error_restores_the_number(number: Callable[[], int]) -> None:
    with pytest.raises(KeyError), blas_threads.for_matrices(SMALL):
        raise KeyError
    assert number() == 2


def test_the_last_of_several_blocks_restores_the_number(number: Callable[[], int]) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with blas_threads.for_matrices(SMALL):
            entered.set()
            leave.wait(60)

    other = threading.Thread(target=hold)
    with blas_threads.for_matrices(SMALL):
        other.start()
        assert entered.wait(60)
        with blas_threads.for_matrices(SMALL):
            assert number() == 1
        assert number() == 1
    assert number() == 1  # the other thread is still in its block
    leave.set()
    other.join()
    assert number() == 2


def test_a_number_that_other_code_sets_meanwhile_stays(number: Callable[[], int]) -> None:
    library = blas.find()
    assert library is not None
    assert library.set_num_threads is not None
    with blas_threads.for_matrices(SMALL):
        ctypes.CFUNCTYPE(None, ctypes.c_int)(library.set_num_threads)(2)
    assert number() == 2


def test_a_block_that_no_exit_has_ended_ends_with_its_object(number: Callable[[], int]) -> None:
    block = blas_threads.for_matrices(SMALL)
    block.__enter__()
    assert number() == 1
    del block
    assert number() == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_the_number_from_before(number: Callable[[], int]) -> None:
    with blas_threads.for_matrices(SMALL):
        child = os.fork()
        if child == 0:  # its status is 0 on success; if it hangs, a signal ends it
            signal.alarm(60)
            first = number()
            with blas_threads.for_matrices(SMALL):
                inside = number()
            os._exit((first, inside, number()) != (2, 1, 2))
        assert number() == 1
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert number() == 2
