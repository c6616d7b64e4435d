"""Iterators that threads share or that are restored: random pipelines against a run by one thread."""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow import errors

Dataset = df.data.Dataset
Transformation = Callable[[Any], Any]
"""Takes and returns a dataset of int64 scalars."""

SMALL = st.integers(1, 4)
EXAMPLES = settings(max_examples=25 if settings().derandomize else 400)
_names = itertools.count()


def in_python(x: Any) -> Any:
    return df.py_function(lambda v: v + 1, [x], df.int64)


def cached_in_file(dataset: Any) -> Any:
    return dataset.cache(os.path.join(_folder.name, str(next(_names))))


def check(v: Any) -> Any:
    if int(v) % 5 == 3:
        raise ValueError("an element that can't be made")
    return v


def failing(x: Any) -> Any:
    return df.py_function(check, [x], df.int64)


_folder = tempfile.TemporaryDirectory()

SOURCES: dict[str, Callable[[int], Any]] = {
    "range": lambda n: Dataset.range(5 * n),
    "slices": lambda n: Dataset.from_tensor_slices(np.arange(3 * n)),
    "generator": lambda n: Dataset.from_generator(
        lambda: iter(range(4 * n)), output_signature=df.TensorSpec([], df.int64)
    ),
    "sequence": lambda n: Dataset.from_source([np.int64(i) for i in range(4 * n)]),
    "random": lambda n: Dataset.random(seed=n).take(3 * n),
}
STEPS: dict[str, Callable[[Any, int], Any]] = {
    "map": lambda d, n: d.map(lambda x: x * 2 + n),
    "map in Python": lambda d, n: d.map(in_python),
    "parallel map": lambda d, n: d.map(in_python, num_parallel_calls=n),
    "parallel map, tuned": lambda d, n: d.map(lambda x: x - n, num_parallel_calls=df.data.AUTOTUNE),
    "filter": lambda d, n: d.filter(lambda x: x % (n + 1) != 0),
    "take_while": lambda d, n: d.take_while(lambda x: x != 3 * n),
    "scan": lambda d, n: d.scan(np.int64(n), lambda s, x: (s + 1, x + s)),
    "shuffle": lambda d, n: d.shuffle(3 * n, seed=n),
    "repeat": lambda d, n: d.repeat(1 + n % 3),
    "take": lambda d, n: d.take(4 * n),
    "skip": lambda d, n: d.skip(n),
    "shard": lambda d, n: d.shard(2, n % 2),
    "prefetch": lambda d, n: d.prefetch(n),
    "cache": lambda d, n: d.cache(),
    "cache in a file": lambda d, n: cached_in_file(d),
    "batch and unbatch": lambda d, n: d.batch(n).unbatch(),
    "padded batch": lambda d, n: d.padded_batch(n).unbatch(),
    "rebatch": lambda d, n: d.batch(2).rebatch(n).unbatch(),
    "concatenate": lambda d, n: d.concatenate(Dataset.range(n)),
    "zip": lambda d, n: Dataset.zip(d, Dataset.range(5 * n).shuffle(2, seed=n)).map(lambda x, y: x + 100 * y),
    "enumerate": lambda d, n: d.enumerate(n).map(lambda i, x: x + 100 * i),
    "flat_map": lambda d, n: d.flat_map(lambda x: Dataset.from_tensors(x).repeat(n)),
    "interleave": lambda d, n: d.interleave(lambda x: Dataset.from_tensors(x).repeat(2), n, 1 + n % 2),
    "interleave in threads": lambda d, n: d.interleave(
        lambda x: Dataset.from_tensors(x).repeat(2), n, 2, num_parallel_calls=2
    ),
    "window": lambda d, n: d.window(n, 2).flat_map(lambda w: w),
    "groups": lambda d, n: d.group_by_window(
        lambda x: x % 2, lambda k, group: group.batch(n), window_size=n
    ).unbatch(),
    "unique": lambda d, n: d.unique(),
    "choose": lambda d, n: Dataset.choose_from_datasets(
        [d, d.skip(n)], Dataset.range(2).repeat(5 * n), stop_on_empty_dataset=n % 2 == 0
    ),
    "sample": lambda d, n: Dataset.sample_from_datasets([d, Dataset.range(n)], seed=n),
    "errors": lambda d, n: d.map(failing).ignore_errors(),
    "errors in parallel": lambda d, n: d.map(failing, num_parallel_calls=n).ignore_errors(),
    "errors before a shuffle": lambda d, n: d.map(failing).shuffle(2 * n, seed=n).ignore_errors(),
    "errors before prefetch": lambda d, n: (
        d.map(failing).prefetch(2).shuffle(n, seed=1).batch(n).ignore_errors().unbatch()
    ),
    "errors before a batch": lambda d, n: d.map(failing).batch(n).ignore_errors().unbatch(),
    "errors in parallel before a batch": lambda d, n: (
        d.map(failing, num_parallel_calls=3).batch(n).ignore_errors().unbatch()
    ),
    "errors in a part": lambda d, n: (
        Dataset.zip(d.map(failing), d).map(lambda x, y: x + 100 * y).ignore_errors()
    ),
}


class Pipeline:
    """A dataset that can be made again: a source, and transformations with a small number each."""

    def __init__(
        self, source: tuple[str, int], steps: list[tuple[str, int]], in_any_order: bool = False
    ) -> None:
        self.source, self.steps, self.in_any_order = source, steps, in_any_order

    def __repr__(self) -> str:
        return f"Pipeline({self.source}, {self.steps}, {self.in_any_order})"

    def make(self) -> Any:
        dataset = SOURCES[self.source[0]](self.source[1])
        for name, number in self.steps:
            dataset = STEPS[name](dataset, number)
        if self.in_any_order:
            dataset = dataset.map(in_python, num_parallel_calls=3, deterministic=False)
        return dataset


pipelines = st.builds(
    Pipeline,
    st.tuples(st.sampled_from(sorted(SOURCES)), SMALL),
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), SMALL), max_size=5),
)
unordered = st.builds(Pipeline, st.just(("range", 4)), pipelines.map(lambda p: p.steps), st.booleans())
ONE_STEP = (
    [Pipeline((source, 4), []) for source in SOURCES]
    + [Pipeline(("range", 4), [], True)]
    + [Pipeline(("range", 4), [(name, 3)]) for name in STEPS]
)


@pytest.fixture(autouse=True, scope="module")
def _frequent_switches() -> Iterator[None]:
    """Let Python switch between threads 500 times as often as usual, several times within each element.

    A tenth of this interval takes ten times as long, for switches alone.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(count: int, action: Callable[[], None]) -> None:
    """Run ``action`` in several threads until all have ended."""
    ready = threading.Barrier(count)

    def run() -> None:
        ready.wait()
        action()

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread waits for ever"


def taken_by_threads(dataset: Any, count: int) -> list[int]:
    iterator, elements = iter(dataset), []

    def take() -> None:
        elements.extend(map(int, iterator))

    in_threads(count, take)
    return elements


@pytest.mark.parametrize("pipeline", ONE_STEP, ids=str)
def test_each_element_comes_to_one_thread(pipeline: Pipeline) -> None:
    assert sorted(taken_by_threads(pipeline.make(), 4)) == sorted(int(x) for x in pipeline.make())


@EXAMPLES
@given(unordered | pipelines, st.integers(2, 5))
def test_threads_take_what_one_thread_takes(pipeline: Pipeline, threads: int) -> None:
    assert sorted(taken_by_threads(pipeline.make(), threads)) == sorted(int(x) for x in pipeline.make())


@EXAMPLES
@given(pipelines, st.data())
def test_an_iterator_that_is_restored_anywhere_goes_on_exactly(pipeline: Pipeline, data: Any) -> None:
    dataset = pipeline.make()
    elements = [int(x) for x in pipeline.make()]
    place = data.draw(st.integers(0, len(elements)))
    iterator = iter(dataset)
    for _ in range(place):
        next(iterator)
    state = json.loads(json.dumps(iterator.get_state()))
    for other in (iter(dataset), iter(pipeline.make()), iterator):
        other.set_state(state)
        assert [int(x) for x in other] == elements[place:]


def damaged(state: Any, data: Any) -> Any:
    """A state in which one part is another value."""
    if isinstance(state, list) and state and data.draw(st.integers(0, 3)):
        place = data.draw(st.integers(0, len(state) - 1))
        return [damaged(x, data) if i == place else x for i, x in enumerate(state)]
    wrong: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers(-3, 60) | st.text(max_size=2)
    return data.draw(wrong | st.lists(wrong, max_size=4))


@EXAMPLES
@given(pipelines, st.data())
def test_a_wrong_state_changes_nothing(pipeline: Pipeline, data: Any) -> None:
    dataset = pipeline.make()
    elements = [int(x) for x in pipeline.make()]
    place = data.draw(st.integers(0, len(elements)))
    iterator = iter(dataset)
    for _ in range(place):
        next(iterator)
    state = iterator.get_state()
    wrong = {**state, "place": damaged(state["place"], data)}
    other = iter(dataset)
    before = other.get_state()
    try:
        other.set_state(wrong)
    except errors.DualflowError:
        assert other.get_state() == before
    else:
        for _ in other:  # which has to work
            pass
    iterator.set_state(state)
    assert [int(x) for x in iterator] == elements[place:]


def test_an_error_reaches_one_thread_and_the_others_go_on() -> None:
    def check(x: Any) -> Any:
        if int(x) % 10 == 3:
            raise KeyError("three")
        return x

    dataset = Dataset.range(40).map(lambda x: df.py_function(check, [x], df.int64)).prefetch(2)
    iterator, elements, raised = iter(dataset), [], []

    def take() -> None:
        while True:
            try:
                elements.append(int(next(iterator)))
            except KeyError:
                raised.append(1)
            except StopIteration:
                return

    in_threads(4, take)
    assert sorted(elements) == [x for x in range(40) if x % 10 != 3]
    assert len(raised) == 4


def test_a_generators_error_reaches_one_thread_and_ends_the_others() -> None:
    def generate() -> Iterator[int]:
        yield from range(20)
        raise KeyError("the end")

    iterator = iter(Dataset.from_generator(generate, output_signature=df.TensorSpec([], df.int64)))
    elements: list[int] = []
    ends: list[str] = []

    def take() -> None:
        try:
            while True:
                elements.append(int(iterator.get_next()))
        except (KeyError, errors.OutOfRangeError) as error:
            ends.append(type(error).__name__)

    in_threads(4, take)
    assert sorted(elements) == list(range(20))
    assert sorted(ends) == ["KeyError", *["OutOfRangeError"] * 3]


def test_a_state_that_threads_take_meanwhile_is_one_of_the_run() -> None:
    def pipeline() -> Any:
        return Dataset.range(60).shuffle(7, seed=1).batch(2).unbatch()

    expected = [int(x) for x in pipeline()]
    iterator, states = iter(pipeline()), []

    def take() -> None:
        states.extend(iterator.get_state() for _ in iterator)

    in_threads(3, take)
    for state in states[::5]:
        other = iter(pipeline())
        other.set_state(state)
        elements = [int(x) for x in other]
        assert elements == expected[60 - len(elements) :]


def test_compiled_functions_take_from_an_iterator_that_threads_share() -> None:
    take = df.function(lambda iterator: next(iterator) + 1)
    iterator, elements = iter(Dataset.range(60).shuffle(7, seed=1)), []

    def run() -> None:
        while True:
            try:
                elements.append(int(take(iterator)))
            except errors.OutOfRangeError:
                return

    in_threads(4, run)
    assert sorted(elements) == list(range(1, 61))


def test_an_element_of_another_shape_than_the_traced_one_stays_the_next() -> None:
    both = df.function(lambda iterator: (next(iterator), next(iterator)))
    iterator = iter(Dataset.range(7).batch(3))
    both(iterator)
    other = iter(Dataset.range(4).batch(3))
    with pytest.raises(errors.InvalidArgumentError, match="drop_remainder=True"):
        both(other)
    assert [x.numpy().tolist() for x in other] == [[3]]


FAILING: dict[str, Transformation] = {
    "map": lambda d: d,
    "batch": lambda d: d.batch(4),
    "shuffle": lambda d: d.shuffle(9, seed=1),
    "skip": lambda d: d.skip(0).batch(3),
    "cache": lambda d: d.cache().batch(5),
    "cache in a file": lambda d: cached_in_file(d).batch(5),
    "prefetch": lambda d: d.prefetch(2),
    "prefetch and shuffle": lambda d: d.prefetch(2).shuffle(9, seed=1).batch(4),
    "all": lambda d: d.padded_batch(7).unbatch().shuffle(4, seed=1).prefetch(2),
}


@pytest.mark.parametrize("threads", [None, 3])
@pytest.mark.parametrize("name", FAILING)
def test_an_element_that_fails_costs_only_itself(name: str, threads: int | None) -> None:
    source = Dataset.range(30).map(failing, num_parallel_calls=threads)
    dataset = FAILING[name](source).ignore_errors()
    elements = [int(x) for batch in dataset for x in np.atleast_1d(batch)]
    assert sorted(elements) == [x for x in range(30) if x % 5 != 3]


def test_parts_of_a_zip_stay_together_after_an_error() -> None:
    dataset = Dataset.zip(Dataset.range(9).map(failing), Dataset.range(9)).ignore_errors()
    assert [(int(x), int(y)) for x, y in dataset] == [(x, x) for x in range(9) if x % 5 != 3]


def test_skip_goes_on_after_an_error() -> None:
    iterator = iter(Dataset.range(9).map(failing).skip(4))
    with pytest.raises(ValueError, match="can't be made"):
        next(iterator)
    assert int(next(iterator)) == 5
