"""Python variables that element functions capture are read when the dataset is created."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import dualflow as df

Dataset = df.data.Dataset
TRANSFORMATIONS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "map": lambda d, f: d.map(f),
    "flat_map": lambda d, f: d.flat_map(lambda x: Dataset.from_tensors(f(x))),
    "interleave": lambda d, f: d.interleave(lambda x: Dataset.from_tensors(f(x)), 2),
    "map in flat_map": lambda d, f: d.flat_map(lambda x: Dataset.from_tensors(x).map(f)),
    "map over datasets": lambda d, f: d.window(1).map(lambda w: f(w.get_single_element())),
    "group_by_window": lambda d, f: d.group_by_window(
        lambda x: x * 0, lambda key, group: group.map(f), window_size=1
    ),
    "elements of unknown rank": lambda d, f: Dataset.from_generator(lambda: iter(range(3)), df.int64).map(f),
}
shift = 0


def shifted(x: Any) -> Any:
    return x + shift


def elements(dataset: Any) -> list[int]:
    return [int(x) for x in dataset]


@pytest.fixture(params=TRANSFORMATIONS)
def transform(request: pytest.FixtureRequest) -> Any:
    return TRANSFORMATIONS[request.param]


def test_nonlocals_are_read_when_the_dataset_is_created(transform: Any) -> None:
    datasets = [transform(Dataset.range(3), lambda x: x + k) for k in (10, 100)]  # noqa: B023  # what is tested
    assert [elements(d) for d in datasets] == [[10, 11, 12], [100, 101, 102]]


def test_globals_are_read_when_the_dataset_is_created(transform: Any) -> None:
    global shift
    datasets = []
    for number in (10, 100):
        shift = number
        datasets.append(transform(Dataset.range(3), shifted))
    shift = 7
    assert [elements(d) for d in datasets] == [[10, 11, 12], [100, 101, 102]]


def test_assignments_to_nonlocals_are_seen_by_the_program() -> None:
    calls = 0

    def counted(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return Dataset.from_tensors(x)

    dataset = Dataset.range(3).flat_map(counted)
    tried = calls
    elements(dataset)
    assert calls - tried == 3


def count_in_module(x: Any) -> Any:
    global shift
    shift += 1
    return Dataset.from_tensors(x)


def test_assignments_to_globals_are_seen_by_the_program() -> None:
    dataset = Dataset.range(3).flat_map(lambda x: count_in_module(x))
    tried = shift
    elements(dataset)
    assert shift - tried == 3


def test_methods_partial_and_recursive_functions_are_captured() -> None:
    class Reader:
        def read(self, x: Any) -> Any:
            return Dataset.from_tensors(x + k)

    def down(x: Any, count: int) -> Any:
        return x if count == 0 else down(x + k, count - 1)

    def with_default(scale: int, x: Any, *, more: int = 5) -> Any:
        return Dataset.from_tensors(x * scale + k + more)

    k = 10
    functions: list[Any] = [
        Reader().read,
        functools.partial(with_default, 2),
        lambda x: Dataset.from_tensors(down(x, 2)),
    ]
    datasets = [Dataset.range(2).flat_map(f) for f in functions]
    k = 1000
    assert [elements(d) for d in datasets] == [[10, 11], [15, 17], [20, 21]]


def test_variables_of_dualflow_are_read_when_the_dataset_runs() -> None:
    v = df.Variable(1, dtype=df.int64)
    dataset = Dataset.range(2).flat_map(lambda x: Dataset.from_tensors(x + v))
    v.assign(10)
    assert elements(dataset) == [10, 11]


def test_debug_mode_reads_variables_as_the_program_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualflow.data.functions.DebugMode.on", True)
    k = 10
    dataset = Dataset.range(2).flat_map(lambda x: Dataset.from_tensors(x + k))
    k = 20
    assert elements(dataset) == [20, 21]
