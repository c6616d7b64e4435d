"""Explicit graphs with functions, control flow and training: sessions run any part of any graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.compat import v1
from dualflow.core.errors import FailedPreconditionError


@pytest.fixture
def graph() -> Iterator[v1.Graph]:
    with v1.Graph().as_default() as default:
        yield default


@pytest.fixture
def session(graph: v1.Graph) -> v1.Session:
    return v1.Session()


# Together with the rest


def test_functions_are_part_of_the_graph_that_calls_them(graph: v1.Graph, session: v1.Session) -> None:
    f = df.function(lambda x: df.reduce_sum(x * x))
    x = v1.placeholder(df.float32, [2])
    assert session.run(f(x), {x: [3.0, 4.0]}) == 25.0


def test_branches_are_chosen_at_each_run(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [])
    y = df.cond(x > 0.0, lambda: x * 2.0, lambda: x - 1.0)
    assert [session.run(y, {x: 3.0}), session.run(y, {x: -3.0})] == [6.0, -4.0]


def test_loops_run_on_dynamic_sizes(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [None])
    _, y = df.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2.0), (df.constant(0), x))
    assert [session.run(y, {x: np.ones(n)}).tolist() for n in (1, 3)] == [[8.0], [8.0, 8.0, 8.0]]


def test_eager_values_are_constants_of_the_graph() -> None:
    outside = df.reshape(df.range(100), [10, 10])
    with v1.Graph().as_default() as graph:
        y = outside + 1
    assert v1.Session(graph=graph).run(y).sum() == 5050


def test_branches_run_on_dynamic_sizes(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [None])
    y = df.cond(df.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x - 1.0)
    (slope,) = v1.gradients(y, [x])
    for n in (1, 3):
        doubled, two = session.run([y, slope], {x: np.ones(n)})
        assert (doubled.tolist(), two.tolist()) == ([2.0] * n, [2.0] * n)


def test_fetching_a_result_runs_the_assignments_of_its_function(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(1.0)
    result = df.function(lambda: w.assign_add(1.0) * 10.0)()
    session.run(v1.global_variables_initializer())
    assert [session.run(result), session.run(result)] == [20.0, 30.0]
    assert session.run(w) == 3.0


def test_fetching_a_result_runs_the_assignments_of_its_branch(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [])
    w = v1.Variable(1.0)
    sign = df.cond(x > 0.0, lambda: w.assign(5.0) * 0.0 + 1.0, lambda: w.assign(7.0) * 0.0 - 1.0)
    session.run(v1.global_variables_initializer())
    assert session.run(w) == 1.0
    assert (session.run(sign, {x: -2.0}), session.run(w)) == (-1.0, 7.0)


def test_an_assignment_that_no_fetch_runs_is_an_error(graph: v1.Graph) -> None:
    w = v1.Variable(1.0)

    @df.function
    def count() -> None:
        w.assign_add(1.0)

    with pytest.raises(FailedPreconditionError, match="no run would execute it"):
        count()


def test_a_part_of_a_variable_is_assigned_by_an_op(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable([1.0, 2.0])
    change = w[1].assign(5.0)
    session.run(v1.global_variables_initializer())
    assert session.run(w).tolist() == [1.0, 2.0]
    assert session.run(change).tolist() == [1.0, 5.0]


# Training


OPTIMIZERS = [
    lambda: v1.train.GradientDescentOptimizer(0.1),
    lambda: v1.train.MomentumOptimizer(0.1, 0.9),
    lambda: v1.train.AdamOptimizer(0.1),
    lambda: v1.train.AdagradOptimizer(0.1),
    lambda: v1.train.RMSPropOptimizer(0.1, momentum=0.9, centered=True),
]


FEEDS = np.array([[1.0, 2.0], [-0.5, 0.25], [3.0, 1.0]], np.float32)


def trained_by_a_session(optimizer: Any) -> Any:
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(df.float32, [2])
        w = v1.Variable([1.0, 2.0])
        train = optimizer.minimize(df.reduce_sum((w * x - 1.0) ** 2.0))
        session.run(v1.global_variables_initializer())
        for feed in FEEDS:
            assert session.run(train, {x: feed}) is None
        return session.run(w)


def trained_eagerly(optimizer: Any) -> Any:
    w = df.Variable([1.0, 2.0])
    for x in map(df.constant, FEEDS):
        optimizer.minimize(lambda x=x: df.reduce_sum((w * x - 1.0) ** 2.0))
    return w.numpy()


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_training_operation_does_what_eager_steps_do(make: Any) -> None:
    np.testing.assert_allclose(trained_by_a_session(make()), trained_eagerly(make()), rtol=1e-5)


def test_a_training_operation_counts_steps(graph: v1.Graph, session: v1.Session) -> None:
    w, count = v1.Variable(1.0), v1.Variable(0, trainable=False)
    train = v1.train.GradientDescentOptimizer(0.1).minimize(w * w, global_step=count)
    session.run(v1.global_variables_initializer())
    for _ in range(3):
        session.run(train)
    assert session.run(count) == 3


def test_building_a_training_operation_does_not_initialize_variables(
    graph: v1.Graph, session: v1.Session
) -> None:
    w = v1.Variable(1.0)
    train = v1.train.MomentumOptimizer(0.1, 0.9).minimize(w * w)
    session.run(w.initializer)
    with pytest.raises(FailedPreconditionError, match="uninitialized"):
        session.run(train)


# Any part of any graph


STEPS = [
    (lambda a, b: a + b, np.add),
    (lambda a, b: a * b, np.multiply),
    (lambda a, b: df.maximum(a, b), np.maximum),
    (lambda a, b: df.reduce_sum(a, axis=0, keepdims=True) - b, lambda a, b: a.sum(0, keepdims=True) - b),
]


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])  # examples compile
@given(st.data())
def test_a_run_computes_any_values_from_any_others(data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0), st.integers(0)), max_size=8))
    with v1.Graph().as_default(), v1.Session() as session:
        tensors: list[Any] = [v1.placeholder(df.float32, [None]), v1.Variable([1.0, 2.0, 4.0]) * 1.0]
        session.run(v1.global_variables_initializer())
        for (make, _), i, j in steps:
            tensors.append(make(tensors[i % len(tensors)], tensors[j % len(tensors)]))
        for _ in range(2):
            full = [i for i, x in enumerate(tensors) if i and x.shape in ((None,), (3,))]
            fed = data.draw(st.sets(st.sampled_from(full)))
            feeds = {0: np.float32([3.0, -1.0, 0.5])} | {i: np.float32([i, 0.0, -i]) for i in fed}
            expected: list[Any] = []
            for k in range(len(tensors)):
                if k in feeds or k == 1:
                    expected.append(feeds.get(k, np.float32([1.0, 2.0, 4.0])))
                else:
                    (_, compute), i, j = steps[k - 2]
                    expected.append(compute(expected[i % k], expected[j % k]))
            fetched = data.draw(st.lists(st.integers(0, len(tensors) - 1), max_size=4))
            result = session.run([tensors[k] for k in fetched], {tensors[k]: v for k, v in feeds.items()})
            for k, value in zip(fetched, result, strict=True):
                np.testing.assert_allclose(value, expected[k], rtol=1e-5, atol=1e-4)


def test_a_traced_function_takes_variables_of_the_graph() -> None:
    @df.function
    def add(v: Any, x: Any) -> Any:
        v.assign_add(x)
        return v * 2.0

    with v1.Graph().as_default(), v1.Session() as session:
        v, w = v1.Variable(3.0), v1.Variable(10.0)
        first, second = add(v, v1.constant(2.0)), add(w, v1.constant(5.0))
        session.run(v1.global_variables_initializer())
        assert session.run([first, second]) == [10.0, 30.0]
        assert session.run([v, w]) == [5.0, 15.0]
    assert add.experimental_get_tracing_count() == 1
