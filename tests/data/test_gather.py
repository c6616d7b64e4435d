"""Batches gathered by one index read, compared with the same transformations element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from required_tools import require_module

import dualflow as df
from dualflow.data.functions import DebugMode

Dataset = df.data.Dataset
STEPS = st.one_of(
    st.tuples(st.just("shuffle"), st.integers(1, 12), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("repeat"), st.integers(0, 3)),
    st.tuples(st.just("take"), st.integers(-1, 15)),
    st.tuples(st.just("skip"), st.integers(0, 6)),
    st.tuples(st.just("shard"), st.integers(1, 3), st.just(0)),
)
"""What doesn't look at elements: the name of a method and its arguments."""


def piped(dataset: Any, steps: list[tuple[Any, ...]], size: int) -> list[Any]:
    for name, *arguments in steps:
        dataset = getattr(dataset, name)(*arguments)
    return [(x.numpy().tolist(), y.numpy().tolist()) for x, y in dataset.batch(size)]


@given(st.integers(0, 12), st.lists(STEPS, max_size=4), st.integers(1, 5))
def test_taking_rows_at_once_gives_what_one_by_one_gives(
    n: int, steps: list[tuple[Any, ...]], size: int
) -> None:
    rows = (np.arange(2.0 * n).reshape(n, 2), np.arange(n))
    spec = (df.TensorSpec([2], df.float64), df.TensorSpec([], df.int64))
    at_once = Dataset.from_tensor_slices(rows)
    one_by_one = Dataset.from_generator(lambda: zip(*rows, strict=True), output_signature=spec)
    assert piped(at_once, steps, size) == piped(one_by_one, steps, size)


def test_zipped_rows_are_taken_at_once_too() -> None:
    x, y = np.arange(10.0), np.arange(10)
    zipped = Dataset.zip((Dataset.from_tensor_slices(x), Dataset.from_tensor_slices(y)))
    together = Dataset.from_tensor_slices((x, y))
    steps = [("shuffle", 4, 1, True), ("repeat", 2)]
    assert piped(zipped, steps, 3) == piped(together, steps, 3)


def test_a_shuffle_in_front_of_a_sequence_reads_what_is_needed() -> None:
    class Recorded:
        def __init__(self) -> None:
            self.read: list[int] = []

        def __len__(self) -> int:
            return 1000

        def __getitem__(self, index: int) -> int:
            self.read.append(index)
            return 2 * index

    source = Recorded()
    dataset = Dataset.from_source(source, df.TensorSpec([], df.int64)).shuffle(1000, seed=1).take(5)
    results = [int(x) for x in dataset]
    assert results == [2 * i for i in source.read]
    assert len(source.read) == 5


# Other libraries' data


def test_columns_of_a_frame_are_sources() -> None:
    pandas = require_module("pandas")
    frame = pandas.DataFrame({"x": [1.5, 2.5], "n": [3, 4]})
    by_name = list(Dataset.from_tensor_slices(dict(frame)))
    assert [(float(e["x"]), int(e["n"])) for e in by_name] == [(1.5, 3), (2.5, 4)]
    rows = Dataset.from_tensor_slices((frame[["x"]], frame["n"])).batch(2)
    assert next(iter(rows))[0].numpy().tolist() == [[1.5], [2.5]]


def test_torchs_datasets_are_sources() -> None:
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.arange(4.0), torch.arange(4))
    results = [(float(x), int(y)) for x, y in Dataset.from_source(data).shuffle(4, seed=1)]
    assert sorted(results) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_grains_datasets_are_sources() -> None:
    grain = pytest.importorskip("grain")
    data = grain.MapDataset.range(5).map(lambda x: x * x)
    assert [int(x) for x in Dataset.from_source(data)] == [0, 1, 4, 9, 16]
    assert [int(x) for x in Dataset.from_source(data.to_iter_dataset())] == [0, 1, 4, 9, 16]


def test_an_iterable_is_iterated_again() -> None:
    class Twice:
        def __iter__(self) -> Any:
            return iter([(1, 2.0), (3, 4.0)])

    dataset = Dataset.from_source(Twice())
    assert [int(x) for x, _ in dataset] == [int(x) for x, _ in dataset] == [1, 3]
    assert int(dataset.cardinality()) == df.data.UNKNOWN_CARDINALITY


def test_debug_mode_runs_functions_in_python() -> None:
    df.data.experimental.enable_debug_mode()
    try:
        received: list[int] = []

        def note(x: Any) -> Any:
            received.append(int(x))
            return x + 1

        assert [int(x) for x in Dataset.range(3).map(note)] == [1, 2, 3]
        assert received == [0, 1, 2]
    finally:
        DebugMode.on = False
