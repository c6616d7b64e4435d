"""Datasets, compared with Python's own tools on the same elements and with TensorFlow's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

Dataset = df.data.Dataset


def elements(dataset: Any) -> list[Any]:
    """The elements as Python's numbers."""
    return [df.nest.map_structure(lambda x: x.numpy().tolist(), element) for element in dataset]


# Where elements come from


def test_slices_are_rows() -> None:
    x, y = np.arange(6.0).reshape(3, 2), [1, 2, 3]
    assert elements(Dataset.from_tensor_slices((x, y))) == [([0, 1], 1), ([2, 3], 2), ([4, 5], 3)]


def test_elements_keep_their_structure() -> None:
    element = next(iter(Dataset.from_tensor_slices({"a": [1, 2], "b": ([3.0, 4.0], [True, False])})))
    assert elements([element]) == [{"a": 1, "b": (3.0, True)}]


def test_changing_an_array_later_changes_no_dataset() -> None:
    array = np.zeros(2)
    dataset = Dataset.from_tensor_slices(array)
    array += 1
    assert elements(dataset) == [0, 0]


@pytest.mark.parametrize("limits", [(5,), (2, 5), (5, 0, -2), (3, 3), (0, 10**12, 10**11)])
def test_range_is_that_of_python(limits: tuple[int, ...]) -> None:
    assert elements(Dataset.range(*limits)) == list(range(*limits))


def test_range_has_the_dtype_requested() -> None:
    assert Dataset.range(2, output_type=df.float32).element_spec == df.TensorSpec([], df.float32)


def test_a_generator_is_called_for_each_iteration() -> None:
    dataset = Dataset.from_generator(lambda n: range(int(n)), df.int32, args=(3,))
    assert elements(dataset) == elements(dataset) == [0, 1, 2]


def test_a_generator_yields_structures() -> None:
    spec = {"x": df.TensorSpec([None], df.float32), "n": df.TensorSpec([], df.int64)}
    dataset = Dataset.from_generator(lambda: iter([{"x": [1.0], "n": 2}]), output_signature=spec)
    assert dataset.element_spec == spec
    assert elements(dataset) == [{"x": [1.0], "n": 2}]


def test_zip_ends_with_the_shortest() -> None:
    dataset = Dataset.zip({"a": Dataset.range(3), "b": (Dataset.range(10, 12),)})
    assert elements(dataset) == [{"a": 0, "b": (10,)}, {"a": 1, "b": (11,)}]


# Which elements come


COUNTS = st.integers(0, 12)


@given(COUNTS, st.integers(-1, 14))
def test_take_and_skip_cut_as_slices_do(n: int, k: int) -> None:
    numbers, dataset = list(range(n)), Dataset.range(n)
    assert elements(dataset.take(k)) == (numbers if k < 0 else numbers[:k])
    assert elements(dataset.skip(k)) == ([] if k < 0 else numbers[k:])


@given(COUNTS, st.integers(1, 4), st.data())
def test_shards_are_slices_with_a_step(n: int, shards: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, shards - 1))
    assert elements(Dataset.range(n).shard(shards, index)) == list(range(n))[index::shards]


@given(COUNTS, st.integers(0, 3))
def test_repeat_multiplies_lists(n: int, k: int) -> None:
    assert elements(Dataset.range(n).repeat(k)) == list(range(n)) * k


def test_repeat_of_nothing_ends() -> None:
    assert elements(Dataset.range(0).repeat()) == []


@given(st.integers(0, 40), st.integers(1, 50), st.integers(0, 5))
def test_a_shuffle_loses_and_invents_nothing(n: int, size: int, seed: int) -> None:
    assert sorted(elements(Dataset.range(n).shuffle(size, seed=seed))) == list(range(n))


@given(st.integers(1, 40), st.integers(1, 50), st.integers(0, 5))
def test_a_shuffle_looks_as_far_as_its_buffer(n: int, size: int, seed: int) -> None:
    result = elements(Dataset.range(n).shuffle(size, seed=seed))
    assert all(x < place + size for place, x in enumerate(result))


@pytest.mark.parametrize("size", [4, 10, df.data.UNKNOWN_CARDINALITY])
def test_shuffling_shuffled_rows_keeps_them_all(size: int) -> None:
    shuffled = Dataset.range(10).shuffle(10, seed=0).shuffle(size, seed=1)
    assert sorted(elements(shuffled)) == list(range(10))


def test_every_order_of_a_full_buffer_is_about_as_likely() -> None:
    dataset = Dataset.range(3).shuffle(3, seed=0)
    orders = [tuple(elements(dataset)) for _ in range(600)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert min(counts) > 60  # of 100; fewer has a probability below 1e-5


def test_each_iteration_is_reshuffled_unless_that_is_off() -> None:
    again = Dataset.range(30).shuffle(30, seed=1)
    assert elements(again) != elements(again)
    once = Dataset.range(30).shuffle(30, seed=1, reshuffle_each_iteration=False)
    assert elements(once) == elements(once)
    twice = elements(once.repeat(2))
    assert twice[:30] == twice[30:]


def test_equal_seeds_shuffle_alike() -> None:
    def run(seed: int | None) -> list[Any]:
        dataset = Dataset.range(30).shuffle(30, seed=seed)
        return [elements(dataset), elements(dataset)]

    assert run(3) == run(3)
    df.random.set_seed(5)
    first = run(None)
    other = run(None)
    df.random.set_seed(5)
    assert run(None) == first != other


def test_concatenate_joins() -> None:
    assert elements(Dataset.range(2).concatenate(Dataset.range(3))) == [0, 1, 0, 1, 2]


def test_enumerate_counts() -> None:
    assert elements(Dataset.range(7, 10).enumerate(start=5)) == [(5, 7), (6, 8), (7, 9)]


# What functions make of them


def test_map_calls_with_the_parts_of_a_tuple() -> None:
    pairs = Dataset.zip(Dataset.range(3), Dataset.range(10, 13))
    assert elements(pairs.map(lambda a, b: {"sum": a + b})) == [{"sum": 10}, {"sum": 12}, {"sum": 14}]


def test_map_traces_once() -> None:
    calls = []

    def note(x: Any) -> Any:
        calls.append(x)
        return x + 1

    dataset = Dataset.range(3).map(note)
    assert elements(dataset) == elements(dataset) == [1, 2, 3]
    assert len(calls) == 1


def test_map_converts_control_flow() -> None:
    def collatz(n: Any) -> Any:
        if n % 2 == 0:
            return n // 2
        return 3 * n + 1

    assert elements(Dataset.range(4).map(collatz)) == [0, 4, 1, 10]


def test_map_reads_variables_as_they_are() -> None:
    v = df.Variable(1, dtype=df.int64)
    dataset = Dataset.range(2).map(lambda x: x + v)
    v.assign(10)
    assert elements(dataset) == [10, 11]


def test_a_list_that_a_function_returns_is_a_tuple() -> None:
    assert elements(Dataset.range(2).map(lambda x: [x, -x])) == [(0, 0), (1, -1)]


def test_a_list_inside_of_a_result_is_a_tensor() -> None:
    dataset = Dataset.range(2).map(lambda x: (x, [x, -x]))
    assert dataset.element_spec[1] == df.TensorSpec([2], df.int64)
    assert [pair.tolist() for _, pair in dataset.as_numpy_iterator()] == [[0, 0], [1, -1]]


def test_python_runs_for_each_element_in_py_function() -> None:
    received = []

    def note(x: Any) -> Any:
        received.append(int(x))
        return x

    dataset = Dataset.range(3).map(lambda x: df.py_function(note, [x], df.int64))
    assert elements(dataset) == received == [0, 1, 2]


def test_map_takes_elements_of_dynamic_sizes() -> None:
    dataset = Dataset.range(5).batch(2).map(lambda x: df.reduce_sum(x))
    assert elements(dataset) == [1, 5, 4]


def test_filter_and_take_while_choose() -> None:
    assert elements(Dataset.range(6).filter(lambda x: x % 2 == 0)) == [0, 2, 4]
    assert elements(Dataset.range(6).take_while(lambda x: x < 2)) == [0, 1]


def test_scan_and_reduce_carry_a_state() -> None:
    zero = np.int64(0)
    assert elements(Dataset.range(5).scan(zero, lambda s, x: (s + x, s))) == [0, 0, 1, 3, 6]
    assert int(Dataset.range(5).reduce(zero, lambda s, x: s + x)) == 10
    count, total = Dataset.range(5).reduce((0.0, zero), lambda s, x: (s[0] + 1.0, s[1] + x))
    assert (float(count), int(total)) == (5.0, 10)


def test_elements_of_which_only_the_dtype_is_known_are_traced_as_they_come() -> None:
    dataset = Dataset.from_generator(lambda: iter([1, 2, 3]), df.int32)
    doubled = dataset.map(lambda x: 2 * x)
    assert "Map" in repr(doubled)
    assert elements(doubled) == [2, 4, 6]
    assert elements(dataset.filter(lambda x: x != 2)) == [1, 3]
    assert int(dataset.reduce(0, lambda s, x: s + x)) == 6


def test_functions_of_map_may_return_datasets() -> None:
    assert [elements(d) for d in Dataset.range(3).map(lambda x: Dataset.range(x))] == [[], [0], [0, 1]]


# Several as one


@given(st.integers(0, 12), st.integers(1, 5), st.booleans())
def test_batches_are_blocks(n: int, size: int, whole: bool) -> None:
    blocks = [list(range(n))[i : i + size] for i in range(0, n, size)]
    expected = [b for b in blocks if len(b) == size or not whole]
    assert elements(Dataset.range(n).batch(size, drop_remainder=whole)) == expected
    assert elements(Dataset.range(n).map(lambda x: x).batch(size, drop_remainder=whole)) == expected


def ragged(n: int) -> Any:
    return Dataset.range(1, n).map(lambda x: df.fill([x], x))


def test_padded_batches_are_filled_up() -> None:
    assert elements(ragged(5).padded_batch(2)) == [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]
    assert elements(ragged(3).padded_batch(2, padded_shapes=4, padding_values=np.int64(-1))) == [
        [[1, -1, -1, -1], [2, 2, -1, -1]]
    ]


def test_padding_is_given_by_component() -> None:
    pairs = Dataset.zip(ragged(3), Dataset.range(2))
    padded = pairs.padded_batch(2, padded_shapes=([3], []), padding_values=(7, None))
    assert elements(padded) == [([[1, 7, 7], [2, 2, 7]], [0, 1])]


@given(st.integers(0, 12), st.integers(1, 5))
def test_unbatch_undoes_batch(n: int, size: int) -> None:
    assert elements(Dataset.range(n).batch(size).unbatch()) == list(range(n))


# What is known before


def cardinalities() -> dict[str, tuple[Any, int]]:
    r = Dataset.range
    return {
        "range": (r(10), 10),
        "batch": (r(10).batch(3), 4),
        "whole batches": (r(10).batch(3, drop_remainder=True), 3),
        "repeat": (r(3).repeat(), -1),
        "repeat none": (r(3).repeat(0), 0),
        "repeat twice": (r(3).repeat(2), 6),
        "repeat nothing": (r(0).repeat(), 0),
        "repeat and take": (r(3).repeat().take(5), 5),
        "take all": (r(10).take(-1), 10),
        "take": (r(10).take(3), 3),
        "skip": (r(10).skip(3), 7),
        "skip all": (r(10).skip(-1), 0),
        "filter": (r(10).filter(lambda x: x > 2), -2),
        "map": (r(10).map(lambda x: x), 10),
        "zip": (Dataset.zip((r(3), r(5))), 3),
        "zip endless": (Dataset.zip((r(3), r(5).repeat())), 3),
        "concatenate": (r(3).concatenate(r(4)), 7),
        "concatenate endless": (r(3).concatenate(r(4).repeat()), -1),
        "prefetch": (r(3).prefetch(1), 3),
        "enumerate": (r(4).enumerate(), 4),
        "shard": (r(10).shard(3, 0), 4),
        "last shard": (r(10).shard(3, 2), 3),
        "unbatch": (r(10).batch(3).unbatch(), -2),
        "unbatch whole": (r(10).batch(5, drop_remainder=True).unbatch(), 10),
        "generator": (Dataset.from_generator(lambda: iter([1]), df.int32), -2),
        "take_while": (r(4).take_while(lambda x: x < 2), -2),
        "scan": (r(4).scan(np.int64(0), lambda s, x: (s + x, s)), 4),
        "shuffle": (r(4).shuffle(2), 4),
        "padded_batch": (r(10).padded_batch(3), 4),
        "from_tensors": (Dataset.from_tensors(1), 1),
        "counter": (Dataset.counter(), -1),
        "filter and repeat": (r(3).filter(lambda x: x > 1).repeat(), -1),
        "filter and take": (r(10).filter(lambda x: x > 2).take(3), -2),
    }


def test_cardinalities_are_those_of_tensorflow() -> None:
    cases = cardinalities()
    actual = {name: int(dataset.cardinality()) for name, (dataset, _) in cases.items()}
    assert actual == {name: expected for name, (_, expected) in cases.items()}


def test_specs_are_those_of_tensorflow() -> None:
    def spec(shape: Any, dtype: Any = df.int64) -> Any:
        return df.TensorSpec(shape, dtype)

    r = Dataset.range
    ragged_pair = Dataset.from_tensors([1, 2]).concatenate(Dataset.from_tensors([1, 2, 3]))
    specs = {
        "batch": (r(10).batch(3).element_spec, spec([None])),
        "whole batches": (r(10).batch(5, drop_remainder=True).element_spec, spec([5])),
        "padded_batch": (
            Dataset.from_tensors(np.zeros((2, 3))).padded_batch(2).element_spec,
            spec([None, 2, 3], df.float64),
        ),
        "enumerate": (r(3).enumerate().element_spec, (spec([]), spec([]))),
        "slices of a list": (Dataset.from_tensor_slices([[1, 2], [3, 4]]).element_spec, spec([2], df.int32)),
        "a list of a function": (r(3).map(lambda x: [x, x]).element_spec, (spec([]), spec([]))),
        "types alone": (
            Dataset.from_generator(lambda: iter([1]), df.int32).element_spec,
            spec(None, df.int32),
        ),
        "unbatch": (r(10).batch(5).unbatch().element_spec, spec([])),
        "concatenate": (ragged_pair.element_spec, spec([None], df.int32)),
        "mixed list": (Dataset.from_tensors([1, 2.5]).element_spec, spec([2], df.float32)),
    }
    assert {k: a for k, (a, _) in specs.items()} == {k: b for k, (_, b) in specs.items()}


def test_len_is_the_cardinality() -> None:
    assert len(Dataset.range(10).batch(3)) == 4
    assert bool(Dataset.range(0))


def test_numpy_iterators_return_arrays_and_scalars_of_numpy() -> None:
    batches = list(Dataset.range(3).batch(2).as_numpy_iterator())
    assert [type(x) for x in batches] == [np.ndarray, np.ndarray]
    assert type(next(Dataset.range(3).as_numpy_iterator())) is np.int64


def test_a_single_element_is_taken_out() -> None:
    assert int(Dataset.range(7, 8).get_single_element()) == 7


def test_a_dataset_has_the_type_of_its_elements_as_a_parameter() -> None:
    assert df.data.Dataset[df.Tensor].range(2).element_spec == df.TensorSpec([], df.int64)
    assert isinstance(iter(df.data.Dataset.range(2)), df.data.Iterator)


def test_a_function_may_change_the_dict_that_it_gets() -> None:
    def doubled(element: dict[str, Any]) -> dict[str, Any]:
        element["y"] = element.pop("x") * 2
        return element

    dataset = df.data.Dataset.from_tensor_slices({"x": [1, 2]})
    for _ in range(2):
        assert [x["y"].numpy() for x in dataset.map(doubled)] == [2, 4]
    assert [[*x] for x in dataset] == [["x"], ["x"]]
