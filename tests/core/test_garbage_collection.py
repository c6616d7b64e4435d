"""Pauses of the garbage collector."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

import dualflow as df
from dualflow.core.garbage_collection import collection_paused


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    """The collector is enabled before and after each test."""
    gc.enable()
    yield
    gc.enable()


def test_the_collector_is_disabled_during_the_block() -> None:
    with collection_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_in_the_block_enables_it_again() -> None:
    with pytest.raises(KeyboardInterrupt), collection_paused():
        raise KeyboardInterrupt
    assert gc.isenabled()


def test_an_error_before_the_block_begins_enables_it_again() -> None:
    pause = collection_paused()
    pause.__enter__()
    del pause
    assert gc.isenabled()


def test_the_outer_of_two_blocks_enables_it_again() -> None:
    with collection_paused():
        with collection_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_disabled_before_stays_disabled() -> None:
    gc.disable()
    with collection_paused():
        pass
    assert not gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_that_is_forked_meanwhile_has_it_enabled() -> None:
    with collection_paused():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_function_is_compiled_without_collections() -> None:
    def chain(x: Any) -> Any:
        for i in range(200):
            x = df.sin(x) * float(i)
        return x

    compiled = df.function(chain).get_concrete_function(df.TensorSpec([8])).compiled
    collections: list[str] = []

    def record(phase: str, _: object) -> None:
        collections.append(phase)

    gc.collect()
    gc.callbacks.append(record)
    try:
        _ = compiled.executable
    finally:
        gc.callbacks.remove(record)
    assert collections in ([], ["start", "stop"])  # there may be one afterwards
