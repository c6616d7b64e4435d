"""Iterator state is small JSON; an iterator restored from it yields exactly the remaining elements."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

Dataset = df.data.Dataset
ROWS = (np.arange(40.0).reshape(20, 2), np.arange(20))


def plain(element: Any) -> Any:
    if isinstance(element, Dataset):
        return [plain(x) for x in element]
    return df.nest.map_structure(
        lambda x: plain(x) if isinstance(x, Dataset) else x.numpy().tolist(), element
    )


def r() -> Any:
    return Dataset.range(20)


PIPELINES: dict[str, Callable[[], Any]] = {
    "range": r,
    "slices, shuffle, repeat, batch": lambda: (
        Dataset.from_tensor_slices(ROWS).shuffle(7, seed=1).repeat(3).batch(4)
    ),
    "shuffle of all": lambda: r().shuffle(100).repeat(2).batch(3),
    "shuffle without a seed": lambda: r().shuffle(5),
    "shuffle after map": lambda: r().map(lambda x: x * x).shuffle(6).batch(3),
    "repeat and shuffle": lambda: r().repeat(2).shuffle(30, seed=2),
    "take, skip, shard": lambda: r().skip(2).shard(2, 1).take(7),
    "filter": lambda: r().filter(lambda x: x % 3 == 0),
    "take_while": lambda: r().take_while(lambda x: x < 9),
    "scan": lambda: r().scan(np.int64(0), lambda s, x: (s + x, s)),
    "concatenate": lambda: r().take(4).concatenate(r().skip(15)),
    "zip": lambda: Dataset.zip(r().shuffle(5, seed=1), r().map(lambda x: -x)),
    "enumerate": lambda: r().shuffle(5, seed=4).enumerate(),
    "batch and unbatch": lambda: r().map(lambda x: x).batch(6).unbatch(),
    "padded": lambda: r().map(lambda x: df.fill([x % 4], x)).padded_batch(3),
    "flat_map": lambda: r().flat_map(lambda n: Dataset.range(n).shuffle(3, seed=1)),
    "interleave": lambda: r().interleave(lambda n: Dataset.range(n % 5), cycle_length=3, block_length=2),
    "interleave in threads": lambda: r().interleave(
        lambda n: Dataset.range(n % 5), cycle_length=3, block_length=2, num_parallel_calls=2
    ),
    "window": lambda: r().window(3, 2),
    "window with gaps": lambda: r().window(2, 5),
    "cache": lambda: r().shuffle(20).cache().repeat(3),
    "prefetch": lambda: r().shuffle(20).map(lambda x: x + 1).prefetch(3),
    "parallel map": lambda: r().shuffle(20).map(lambda x: x + 1, num_parallel_calls=3),
    "parallel map, tuned": lambda: r().map(lambda x: x + 1, num_parallel_calls=df.data.AUTOTUNE),
    "generator": lambda: Dataset.from_generator(lambda: iter(range(20)), df.int32).batch(3),
    "source": lambda: Dataset.from_source(list(range(20))).shuffle(4, seed=1),
    "groups": lambda: r().group_by_window(lambda x: x % 3, lambda k, d: d.batch(2), window_size=2),
    "rebatch": lambda: r().batch(6).rebatch(4),
    "unique": lambda: r().map(lambda x: x % 7).unique(),
    "sample": lambda: Dataset.sample_from_datasets([r(), r().map(lambda x: -x)], seed=1),
    "choose": lambda: Dataset.choose_from_datasets([r(), r().skip(3)], r().map(lambda x: x % 2)),
    "choose, cached": lambda: Dataset.choose_from_datasets(
        [r().take(1), r().map(lambda x: x + 1000)], Dataset.range(2).repeat(2)
    ).cache(),
    "sample, cached": lambda: Dataset.sample_from_datasets([r().take(3), r()], seed=1).cache().shuffle(4),
    "random": lambda: Dataset.random(seed=1).take(20),
    "counter": lambda: Dataset.counter(3).take(9),
    "without errors": lambda: r().ignore_errors(),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_restored_iterator_goes_on_exactly(name: str) -> None:
    dataset = PIPELINES[name]()
    count = len(list(PIPELINES[name]()))
    for k in {0, 1, count // 2, count}:
        iterator = iter(dataset)
        for _ in range(k):
            next(iterator)
        text = json.dumps(iterator.get_state())
        remaining = [plain(x) for x in iterator]
        for other in (iter(dataset), iter(PIPELINES[name]()), iterator):
            other.set_state(json.loads(text))
            assert [plain(x) for x in other] == remaining
    assert len(text) < 1000


def test_epochs_after_a_restored_one_are_the_same() -> None:
    def losses(state: Any, epochs: int) -> tuple[Any, list[Any]]:
        dataset = Dataset.range(10).shuffle(10, seed=1).batch(3)
        iterator = iter(dataset)
        saved = None
        if state is not None:
            iterator.set_state(state)
        else:
            next(iterator)
            saved = iterator.get_state()
        history = [plain(x) for x in iterator]
        for _ in range(epochs):
            history += [plain(x) for x in dataset]
        return saved, history

    saved, expected = losses(None, 2)
    assert losses(saved, 2)[1] == expected


def test_the_state_of_a_generator_is_the_number_of_elements_read() -> None:
    dataset = Dataset.from_generator(lambda: iter(range(5)), df.int32)
    iterator = iter(dataset)
    next(iterator)
    assert iterator.get_state()["place"] == 1


def test_another_process_goes_on() -> None:
    program = (
        "import dualflow as df, json, sys\n"
        "iterator = iter(df.data.Dataset.range(100).shuffle(30).batch(7).prefetch(2))\n"
        "if len(sys.argv) > 1: iterator.set_state(json.loads(sys.argv[1]))\n"
        "else: next(iterator), next(iterator)\n"
        "state = iterator.get_state()\n"
        "print(json.dumps(state)); print([x.numpy().tolist() for x in iterator])\n"
    )

    def run(*arguments: str) -> list[str]:
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    state, remaining = run()
    assert run(state) == [state, remaining]


def test_a_peeked_element_is_not_lost() -> None:
    dataset = Dataset.range(5).batch(2)
    take = df.function(lambda it: next(it))
    iterator = iter(dataset)
    take(iterator)
    take.get_concrete_function(iterator)  # looks at the next element's size
    state = iterator.get_state()
    assert plain(next(iterator)) == [2, 3]
    again = iter(dataset)
    again.set_state(state)
    assert plain(next(again)) == [2, 3]


def test_a_state_is_the_callers_own() -> None:
    iterator = iter(Dataset.range(6).shuffle(3, seed=1).repeat(2).prefetch(1))
    next(iterator)
    state = iterator.get_state()
    text = json.dumps(state)
    state["place"][1][2][0][0] = -1
    assert json.dumps(iterator.get_state()) == text


@pytest.mark.parametrize("place", [None, [], 3, [1, 2, 3], [[1], 0, 0, 0, 0], [[1, 2], 0, 1, 0, 99]])
def test_a_wrong_state_is_refused_and_the_dataset_stays_as_it_is(place: Any) -> None:
    def pipeline() -> Any:
        return Dataset.range(6).shuffle(6, seed=3).batch(3)

    untouched, dataset = pipeline(), pipeline()
    expected = [[plain(x) for x in untouched] for _ in range(2)]
    iterator = iter(dataset)
    state = iterator.get_state()
    with pytest.raises(df.errors.InvalidArgumentError, match=r"state is damaged|elements into a dataset"):
        iterator.set_state({**state, "place": place})
    assert iterator.get_state() == state
    assert [[plain(x) for x in iterator], [plain(x) for x in dataset]] == expected


def test_an_error_while_elements_are_recomputed_leaves_the_iterator_where_it_is() -> None:
    fails: list[int] = []

    def check(x: Any) -> Any:
        if fails:
            raise KeyError("now it fails")
        return x

    dataset = Dataset.range(6).map(lambda x: df.py_function(check, [x], df.int64)).shuffle(3, seed=1)
    iterator = iter(dataset)
    elements = [plain(next(iterator)) for _ in range(3)]
    state = iterator.get_state()
    fails.append(1)
    with pytest.raises(KeyError):
        iterator.set_state(state)
    fails.clear()
    assert sorted(elements + [plain(x) for x in iterator]) == list(range(6))
