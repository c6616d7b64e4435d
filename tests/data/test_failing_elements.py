"""Elements that fail: only they are lost, and iteration goes on with the next ones."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dualflow as df
from dualflow import errors

Dataset = df.data.Dataset
VECTOR = df.TensorSpec([None], df.int64)


def numbers() -> Any:
    """The numbers from 0 to 9, of which 5 can't be computed."""
    return Dataset.range(10).map(fail_for_five)


def fail_for_five(x: Any) -> Any:
    df.debugging.assert_none_equal(x, df.constant(5, df.int64))
    return x


def plain(dataset: Any) -> list[Any]:
    return [x.numpy().tolist() for x in dataset]


REMAINING = [0, 1, 2, 3, 4, 6, 7, 8, 9]
FAILING: dict[str, Callable[[], Any]] = {
    "map": numbers,
    "filter": lambda: numbers().filter(lambda x: x < 100),
    "scan": lambda: Dataset.range(10).scan(0, lambda count, x: (count + 1, fail_for_five(x))),
    "zip": lambda: Dataset.zip(numbers(), Dataset.range(10)).map(lambda x, _: x),
    "unbatch": lambda: numbers().map(lambda x: df.reshape(x, [1])).unbatch(),
    "map with AUTOTUNE": lambda: Dataset.range(10).map(fail_for_five, df.data.AUTOTUNE),
    "a timed call of AUTOTUNE": lambda: Dataset.range(3, 10).map(fail_for_five, df.data.AUTOTUNE),
}


@pytest.mark.parametrize("name", FAILING)
def test_filling_the_buffer_of_a_shuffle_loses_one_element(name: str) -> None:
    dataset = FAILING[name]()
    expected = plain(dataset.ignore_errors())
    assert sorted(plain(dataset.shuffle(10, seed=1).ignore_errors())) == expected
    assert sorted(plain(dataset.shuffle(df.data.UNKNOWN_CARDINALITY).ignore_errors())) == expected
    assert set(expected) <= set(REMAINING)


@pytest.mark.parametrize("name", FAILING)
def test_skip_counts_the_elements_without_the_failing_one(name: str) -> None:
    dataset = FAILING[name]()
    assert plain(dataset.skip(4).ignore_errors()) == plain(dataset.ignore_errors())[4:]


def test_an_iterator_that_is_restored_after_an_error_goes_on_after_it() -> None:
    dataset = numbers().filter(lambda x: x < 100).shuffle(10, seed=1)
    iterator = iter(dataset)
    with pytest.raises(errors.InvalidArgumentError):
        next(iterator)
    first, state = int(next(iterator)), iterator.get_state()
    others = [int(x) for x in iterator]
    assert sorted([first, *others]) == REMAINING
    restored = iter(dataset)
    restored.set_state(state)
    assert [int(x) for x in restored] == others


def unequal() -> Iterator[Any]:
    """Pairs of vectors, the second of which differ in length."""
    yield [1, 2], [1, 2]
    yield [3, 4, 5], [3]
    yield [6, 7], [6, 7]


@pytest.mark.parametrize("method", [lambda d: d.unbatch(), lambda d: d.rebatch(2).unbatch()])
def test_a_batch_of_unequal_components_leaves_no_rows(method: Callable[[Any], Any]) -> None:
    pairs = Dataset.from_generator(unequal, output_signature=(VECTOR, VECTOR))
    rows = [(int(x), int(y)) for x, y in method(pairs).ignore_errors()]
    assert rows == [(1, 1), (2, 2), (6, 6), (7, 7)]


def test_groups_after_a_failing_group_are_reduced() -> None:
    def fail_for_one(key: Any, group: Any) -> Any:
        df.debugging.assert_none_equal(key, df.constant(1, df.int64))
        return group.batch(10)

    grouped = Dataset.range(6).group_by_window(lambda x: x % 3, fail_for_one, window_size=10)
    assert plain(grouped.ignore_errors()) == [[0, 3], [2, 5]]


def test_a_group_may_become_an_endless_dataset() -> None:
    grouped = Dataset.range(4).group_by_window(lambda x: x % 2, lambda key, group: group.repeat(), 2)
    assert plain(grouped.take(5)) == [0, 2, 0, 2, 0]


def test_a_wrong_cardinality_is_reported_once() -> None:
    asserted = Dataset.range(3).apply(df.data.experimental.assert_cardinality(5))
    assert plain(asserted.ignore_errors()) == [0, 1, 2]


def test_lines_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("x,n\n1,2\nbad,3\n4\n5,6\n7,8\n", encoding="utf-8")
    dataset = df.data.experimental.make_csv_dataset(
        str(path), 2, column_defaults=[0.0, 0], num_epochs=1, shuffle=False, ignore_errors=True
    )
    assert [x["n"].numpy().tolist() for x in dataset] == [[2, 6], [8]]


def wait_until_main_thread_waits(pause: threading.Event) -> None:
    """Return when the main thread waits for a prefetched element, and has taken all that there are."""
    main = threading.main_thread().ident
    while True:
        frame = sys._current_frames()[main]
        if frame.f_code.co_name == "wait" and frame.f_back.f_code.co_name == "take":
            queue = frame.f_back.f_locals["self"]
            if not queue._outcomes:
                return
        pause.wait(0.001)


def test_prefetched_elements_before_ctrl_c_are_not_lost() -> None:
    interrupted = threading.Event()

    def interrupting() -> Iterator[int]:
        yield from range(2)
        wait_until_main_thread_waits(interrupted)
        signal.raise_signal(signal.SIGINT)
        interrupted.wait()
        yield from range(2, 4)

    dataset = Dataset.from_generator(interrupting, output_signature=df.TensorSpec([], df.int64))
    iterator = iter(dataset.prefetch(8).batch(4))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
    finally:
        signal.signal(signal.SIGINT, handler)
        interrupted.set()
    assert plain(iterator) == [[0, 1, 2, 3]]
