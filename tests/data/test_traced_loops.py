"""Datasets and iterators in traced functions: the loop's body is one compiled step for each element."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow import errors

Dataset = df.data.Dataset


@df.function
def total(dataset: Any) -> Any:
    sum_ = df.constant(0, df.int64)
    for x in dataset:
        sum_ += df.reduce_sum(x)
    return sum_


def test_datasets_of_one_spec_share_a_trace() -> None:
    before = total.experimental_get_tracing_count()
    assert int(total(Dataset.range(5))) == 10
    assert int(total(Dataset.range(7).filter(lambda x: x > 2))) == 18
    assert total.experimental_get_tracing_count() - before <= 1


def test_batches_of_several_sizes_are_one_trace() -> None:
    before = total.experimental_get_tracing_count()
    assert int(total(Dataset.range(11).batch(4))) == 55
    assert total.experimental_get_tracing_count() - before == 1


def test_a_captured_dataset_is_read_from_its_beginning() -> None:
    dataset = Dataset.range(4)

    @df.function
    def squares() -> Any:
        result = df.constant(0, df.int64)
        for x in dataset:
            result += x * x
        return result

    assert int(squares()) == int(squares()) == 14


def test_break_continue_and_return_leave_the_loop() -> None:
    @df.function
    def odd_until(dataset: Any, last: Any) -> Any:
        result = df.constant(0, df.int64)
        for x in dataset:
            if x % 2 == 0:
                continue
            if x > last:
                break
            result += x
        return result

    @df.function
    def first_above(dataset: Any, least: Any) -> Any:
        for x in dataset:
            if x > least:
                return x
        return df.constant(-1, df.int64)

    ten = Dataset.range(10)
    assert int(odd_until(ten, df.constant(6, df.int64))) == 1 + 3 + 5
    assert int(first_above(ten, df.constant(3, df.int64))) == 4
    assert int(first_above(ten, df.constant(30, df.int64))) == -1


def test_elements_are_read_no_further_than_needed() -> None:
    @df.function
    def until(iterator: Any) -> Any:
        for x in iterator:
            if x > 2:
                break
        return df.constant(0)

    iterator = iter(Dataset.range(10))
    until(iterator)
    assert int(next(iterator)) == 4


def test_structures_enumerate_zip_and_methods() -> None:
    @df.function
    def mixed(dataset: Any) -> Any:
        result = df.constant(0, df.int64)
        for i, x in enumerate(dataset):
            result += x * df.cast(i, df.int64)
        for x, y in zip(dataset, dataset.skip(1), strict=False):
            result += x * y
        for batch in dataset.map(lambda x: 2 * x).batch(3):
            result += df.reduce_max(batch)
        return result

    def expected(n: int) -> int:
        numbers = range(n)
        pairs = sum(x * (x + 1) for x in range(n - 1))
        blocks = [list(numbers)[i : i + 3] for i in range(0, n, 3)]
        return sum(x * x for x in numbers) + pairs + sum(2 * max(b) for b in blocks)

    assert [int(mixed(Dataset.range(n))) for n in (4, 7)] == [expected(4), expected(7)]


def test_variables_change_with_each_element() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    targets = rows @ np.array([[1.0], [-2.0], [0.5]], np.float32)
    dataset = Dataset.from_tensor_slices((rows, targets)).batch(8)

    def trained(wrap: Any) -> Any:
        weights = df.Variable(df.zeros([3, 1]))

        @wrap
        def train(data: Any) -> Any:
            steps = 0
            for x, y in data:
                with df.GradientTape() as tape:
                    loss = df.reduce_mean((df.matmul(x, weights) - y) ** 2)
                weights.assign_sub(0.2 * tape.gradient(loss, weights))
                steps += 1
            return steps

        assert int(train(dataset)) == 7
        return weights.numpy()

    np.testing.assert_allclose(trained(df.function), trained(lambda f: f), rtol=1e-5)


def test_next_reads_an_element_at_each_call() -> None:
    step = df.function(lambda iterator: next(iterator))
    iterator = iter(Dataset.range(5).batch(2))
    assert [step(iterator).numpy().tolist() for _ in range(3)] == [[0, 1], [2, 3], [4]]
    assert step.experimental_get_tracing_count() == 2  # one for each size
    with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
        step(iterator)


def test_next_in_a_loop_of_the_graph() -> None:
    @df.function
    def sum_of(iterator: Any, count: Any) -> Any:
        result = df.constant(0, df.int64)
        for _ in df.range(count):
            result += next(iterator)
        return result

    iterator = iter(Dataset.range(10))
    assert int(sum_of(iterator, df.constant(4))) == 6
    assert int(sum_of(iterator, df.constant(2))) == 9


@df.function
def in_parts(dataset: Any, taken: Any) -> Any:
    iterator = iter(dataset)
    digits = next(iterator)
    for x in iterator:
        digits = digits * 10 + x
        if digits >= taken:
            break
    return digits, next(iter(iterator))


def test_a_function_creates_an_iterator_in_each_call() -> None:
    for _ in range(2):
        assert [int(x) for x in in_parts(Dataset.range(1, 8), df.constant(123, df.int64))] == [123, 4]
    assert [int(x) for x in in_parts(Dataset.range(2, 9), df.constant(20, df.int64))] == [23, 4]
    with pytest.raises(errors.OutOfRangeError, match="the iterator has no more elements"):
        in_parts(Dataset.range(3), df.constant(1000, df.int64))


def test_an_iteration_creates_an_iterator_of_its_own() -> None:
    @df.function
    def first_two(n: Any) -> Any:
        digits = df.constant(0, df.int64)
        for _ in df.range(n):
            iterator = iter(Dataset.range(3, 9))
            digits = digits * 100 + next(iterator) * 10 + next(iterator)
        return digits

    assert int(first_two(df.constant(3))) == 343434


def test_a_created_iterator_reads_batches_of_several_sizes() -> None:
    @df.function
    def batches() -> Any:
        iterator = iter(Dataset.range(5).batch(3))
        return next(iterator), next(iterator), iterator.get_next_as_optional().has_value()

    first, second, more = batches()
    assert (first.numpy().tolist(), second.numpy().tolist(), bool(more)) == ([0, 1, 2], [3, 4], False)


def test_threads_create_iterators_of_their_own() -> None:
    @df.function
    def sum_of_all(dataset: Any) -> Any:
        iterator, sum_ = iter(dataset), df.constant(0, df.int64)
        for x in iterator:
            sum_ += x
        return sum_

    datasets = [Dataset.range(1000 + i) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        sums = list(pool.map(sum_of_all, datasets * 4))
    assert [int(x) for x in sums] == [sum(range(1000 + i)) for i in range(4)] * 4


def test_a_captured_iterator_goes_on() -> None:
    iterator = iter(Dataset.range(4))
    step = df.function(lambda: iterator.get_next() * 10)
    assert [int(step()), int(step()), int(next(iterator))] == [0, 10, 2]


def test_reduce_runs_when_the_function_does() -> None:
    @df.function
    def powers(dataset: Any, start: Any) -> Any:
        return dataset.reduce(start, lambda state, x: state * 2 + x)

    start = df.constant(1, df.int64)
    assert int(powers(Dataset.range(3), start)) == 8 + 0 + 2 + 2
    assert int(powers(Dataset.range(1), start)) == 2


def test_loops_over_datasets_nest() -> None:
    @df.function
    def pairs(a: Any, b: Any) -> Any:
        result = df.constant(0, df.int64)
        for x in a:
            for y in b:
                result += x * y
        return result

    assert int(pairs(Dataset.range(4), Dataset.range(1, 3))) == 6 * 3


def written(rows: Any) -> Any:
    sums = df.TensorArray(df.int64, size=0, dynamic_size=True, element_shape=())
    for row in rows:
        total = df.constant(0, df.int64)
        for x in row:
            total = total * 10 + x
        sums = sums.write(sums.size(), total)
    return sums.stack()


def longer(rows: Any) -> Any:
    kept = df.constant([7, 8], df.int64)
    for row in rows:
        df.autograph.experimental.set_loop_options(shape_invariants=[(kept, df.TensorShape([None]))])
        kept = df.concat([kept, row], 0)
    return kept


def padded(rows: Any) -> Any:
    square = df.ones([2, 2], df.int64)
    for row in rows:
        df.autograph.experimental.set_loop_options(shape_invariants=[(square, df.TensorShape(None))])
        square = df.pad(square, [[1, 1], [1, 1]]) + row[0]
    return square


def wider(rows: Any) -> Any:
    """Its axes are equal before the loop alone."""
    square = df.ones([2, 2], df.int64)
    for row in rows:
        df.autograph.experimental.set_loop_options(shape_invariants=[(square, df.TensorShape([None, None]))])
        square = df.concat([square, square[:, :1] * row[1]], 1)
    return square


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("function", [written, longer, padded, wider])
def test_carried_values_may_grow_with_each_element(function: Any, count: int) -> None:
    dataset = Dataset.from_tensor_slices(np.arange(1, 7).reshape(3, 2)).take(count)
    compiled = df.function(function)
    for _ in range(2):
        result = compiled(dataset)
        np.testing.assert_array_equal(result, function(dataset), strict=True)
    assert (
        int(df.reduce_sum(df.function(lambda data: function(data) * 2)(dataset))) == 2 * result.numpy().sum()
    )


def test_a_variable_that_no_element_has_assigned_is_missed_where_it_is_read() -> None:
    @df.function
    def last_of(dataset: Any) -> Any:
        for x in dataset:
            last = x
        return last

    assert int(last_of(Dataset.range(3))) == 2
    with pytest.raises(UnboundLocalError, match="last"):
        last_of(Dataset.range(0))


def test_an_error_in_the_loop_is_the_users() -> None:
    @df.function
    def strict(dataset: Any) -> Any:
        result = df.constant(0, df.int64)
        for x in dataset:
            if x > 1:
                raise KeyError("too large")
            result += x
        return result

    with pytest.raises(KeyError, match="too large"):
        strict(Dataset.range(5))


def test_datasets_work_where_functions_run_eagerly() -> None:
    df.config.run_functions_eagerly(True)
    try:
        assert int(total(Dataset.range(5))) == 10
    finally:
        df.config.run_functions_eagerly(False)


class SourceError(Exception):
    """What a source of elements raises."""


def ending() -> Iterator[float]:
    yield from (0.5, 1.5, 2.5)
    raise SourceError


FAILING = {
    "the source fails": lambda: Dataset.from_generator(
        ending, output_signature=df.TensorSpec([], df.float32)
    ),
    "an iteration fails": lambda: Dataset.from_tensor_slices([0.5, 1.5, 7.0, 2.5]),
}


def inside(f: Any, v: df.Variable) -> Any:
    return df.function(lambda: f(v))


CALLS = {
    "captured": lambda run, v: df.function(lambda: run(v)),
    "an argument": lambda run, v: functools.partial(df.function(run), v),
    "inside of another": lambda run, v: inside(df.function(run), v),
}


@pytest.mark.parametrize("make", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_loop_that_fails_leaves_what_eager_code_leaves(make: Any, call: Any) -> None:
    def left(way: Any) -> list[float]:
        total, turns, dataset = df.Variable(0.0), df.Variable(0.0), make()

        def run(v: Any) -> None:
            v.assign_add(100.0)
            for x in dataset:
                turns.assign_add(1.0)
                df.debugging.assert_less(x, 5.0)
                v.assign_add(x)
            turns.assign(-1.0)

        function = way(run, total)
        for _ in range(2):  # the second call takes the fast path
            with pytest.raises((SourceError, errors.InvalidArgumentError)):
                function()
        return [float(total), float(turns)]

    eager = left(functools.partial)
    assert left(call) == eager
    assert min(eager) > 0.0
