"""Pauses of the garbage collector."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import dualflow as df
from dualflow.core import garbage_collection
from dualflow.core.garbage_collection import YOUNG_OBJECTS, collection_paused, collections_delayed


class Cycle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


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


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that adds as many modules as a first compile imports."""

    def add() -> None:
        for i in range(garbage_collection.MANY_MODULES):
            monkeypatch.setitem(sys.modules, f"test_garbage_collection.{i}", ModuleType(str(i)))

    return add


def is_old(value: object) -> bool:
    return any(x is value for x in gc.get_objects(2))


@pytest.mark.parametrize("many", [True, False])
def test_objects_become_old_if_many_modules_were_imported(modules: Callable[[], None], many: bool) -> None:
    gc.unfreeze()
    with collection_paused():
        created: list[object] = []
        if many:
            modules()
    assert is_old(created) == many


def test_objects_that_became_old_are_collected_as_garbage(modules: Callable[[], None]) -> None:
    with collection_paused():
        cycle = Cycle()
        modules()
    reference = weakref.ref(cycle)
    del cycle
    gc.collect()
    assert reference() is None


def test_objects_that_the_caller_has_frozen_stay_frozen(modules: Callable[[], None]) -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with collection_paused():
            modules()
        assert gc.get_freeze_count() == frozen > 0
    finally:
        gc.unfreeze()


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


@pytest.fixture
def threshold() -> Iterator[int]:
    """The threshold of the youngest generation; one that a test sets is restored."""
    thresholds = gc.get_threshold()
    yield thresholds[0]
    gc.set_threshold(*thresholds)


def assert_raised(threshold: int) -> None:
    assert gc.get_threshold()[0] == YOUNG_OBJECTS > threshold


def test_an_error_in_a_block_of_fewer_collections_restores_the_threshold(threshold: int) -> None:
    with pytest.raises(KeyboardInterrupt), collections_delayed():
        raise KeyboardInterrupt(assert_raised(threshold))
    assert gc.get_threshold()[0] == threshold


def test_an_error_before_the_block_begins_restores_the_threshold(threshold: int) -> None:
    block = collections_delayed()
    block.__enter__()
    del block
    assert gc.get_threshold()[0] == threshold


@pytest.mark.parametrize("other", [0, 3 * YOUNG_OBJECTS])
def test_a_threshold_of_the_user_stays(threshold: int, other: int) -> None:
    gc.set_threshold(other)
    with collections_delayed():
        assert gc.get_threshold()[0] == other
        gc.set_threshold(threshold + 1)
    assert gc.get_threshold()[0] == threshold + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_that_is_forked_meanwhile_has_the_threshold_before(threshold: int) -> None:
    with collections_delayed():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.get_threshold()[0] == threshold else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_garbage_of_a_traced_function_is_collected_during_the_trace() -> None:
    alive: weakref.WeakSet[Cycle] = weakref.WeakSet()
    most = 0

    @df.function
    def f(x: Any) -> Any:
        nonlocal most
        for _ in range(4 * YOUNG_OBJECTS):
            alive.add(Cycle())
            most = max(most, len(alive))
        return x

    f(df.constant(1.0))
    assert most <= YOUNG_OBJECTS


def test_a_trace_visits_young_objects_alone() -> None:
    generations: list[int] = []

    def record(phase: str, info: dict[str, int]) -> None:
        generations.append(info["generation"])

    @df.function
    def f(x: Any) -> Any:
        for _ in range(1000):
            x = df.sin(x)
        return x

    gc.collect()
    gc.callbacks.append(record)
    try:
        f.get_concrete_function(df.TensorSpec([2]))
    finally:
        gc.callbacks.remove(record)
    assert set(generations) <= {0}


def test_the_import_of_the_package_is_no_work_for_the_collector() -> None:
    program = (
        "import gc; runs = []; gc.callbacks.append(lambda phase, info: runs.append(phase)); "
        "import dualflow; print(len(runs), gc.isenabled())"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    calls, enabled = completed.stdout.split()
    assert int(calls) < 40  # 14; without a pause 160
    assert enabled == "True"
