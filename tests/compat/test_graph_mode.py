"""TensorFlow 1's graph mode: a graph is built once, and sessions run the fetched part of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.core.errors import (
    FailedPreconditionError,
    InaccessibleTensorError,
    InvalidArgumentError,
    NotFoundError,
)


@pytest.fixture
def graph() -> Iterator[v1.Graph]:
    with v1.Graph().as_default() as default:
        yield default


@pytest.fixture
def session(graph: v1.Graph) -> v1.Session:
    return v1.Session()


# Fetches


def test_a_run_gives_numpy_arrays(graph: v1.Graph, session: v1.Session) -> None:
    result = session.run(df.constant([1.0, 2.0]) + 1.0)
    assert type(result) is np.ndarray
    assert result.tolist() == [2.0, 3.0]


def test_fetches_keep_their_structure(graph: v1.Graph, session: v1.Session) -> None:
    x = df.constant(2.0)
    result = session.run({"a": [x, x * 2.0], "b": (x * 3.0,)})
    assert result == {"a": [2.0, 4.0], "b": (6.0,)}


def test_a_tensor_is_fetched_by_its_name(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [], name="x")
    y = x * 2.0
    assert session.run([y.name, "x:0"], {"x:0": 4.0}) == [8.0, 4.0]


def test_names_of_tensors_are_unique(graph: v1.Graph) -> None:
    x = v1.placeholder(df.float32, [])
    tensors = [x, v1.placeholder(df.float32, []), x + 1.0, x + 2.0]
    assert len({t.name for t in tensors}) == 4
    assert all(graph.get_tensor_by_name(t.name)._value is t._value for t in tensors)


def test_a_name_without_a_tensor_is_an_error(graph: v1.Graph) -> None:
    with pytest.raises(NotFoundError, match="does not exist in the graph"):
        graph.get_tensor_by_name("nothing:0")


@pytest.mark.parametrize("fetch", [3, None, 1.5, [2], [None], object()])
def test_only_tensors_can_be_fetched(session: v1.Session, fetch: Any) -> None:
    with pytest.raises(TypeError, match="invalid type"):
        session.run(fetch)


def test_a_tensor_of_another_graph_can_not_be_fetched(session: v1.Session) -> None:
    with v1.Graph().as_default():
        strange = df.constant(1.0) + 1.0
    with pytest.raises(ValueError, match="not an element of this graph"):
        session.run(strange)


def test_results_of_a_run_are_writable(graph: v1.Graph, session: v1.Session) -> None:
    x = df.constant([1.0, 2.0])
    session.run(x)[:] = 7.0
    assert session.run(x).tolist() == [1.0, 2.0]


# Feeds


def test_a_placeholder_that_is_not_fed_is_an_error(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [1, 1])
    with pytest.raises(
        InvalidArgumentError, match="must feed a value for placeholder tensor 'Placeholder:0'"
    ):
        session.run(x + 1.0)


def test_only_what_the_fetches_need_has_to_be_fed(graph: v1.Graph, session: v1.Session) -> None:
    x, y = v1.placeholder(df.float32, []), v1.placeholder(df.float32, [])
    _ = x * y
    assert session.run(x + 1.0, {x: 1.0}) == 2.0


def test_a_feed_of_another_shape_is_an_error(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [None])
    expected = r"Cannot feed value of shape \(2, 2\) for Tensor Placeholder:0, which has shape \(None,\)"
    with pytest.raises(ValueError, match=expected):
        session.run(x, {x: [[1.0, 2.0], [3.0, 4.0]]})


def test_a_tensor_is_no_feed(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [])
    with pytest.raises(TypeError, match=r"cannot be a df\.Tensor"):
        session.run(x, {x: df.constant(1.0)})


def test_a_key_that_is_no_tensor_is_an_error(graph: v1.Graph, session: v1.Session) -> None:
    with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
        session.run(df.constant(1.0), {3: 1.0})


def test_feeds_are_a_dict(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [])
    with pytest.raises(TypeError, match="feed_dict is a dict of tensors and their values, not a list"):
        session.run(x, [(x, 1.0)])  # type: ignore[arg-type]  # on purpose


def test_feeds_take_the_dtype_of_the_placeholder(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [2])
    assert session.run(x, {x: np.array([1.0, 2.0])}).dtype == np.float32


def test_an_intermediate_may_be_fed(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [])
    y = x * 2.0
    assert session.run(y + 1.0, {y: 10.0}) == 11.0


def test_dynamic_sizes_are_those_of_each_feed(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [None, 2])
    y = df.reduce_mean(x @ df.ones([2, 3]), axis=0)
    for rows in (1, 4, 7):
        fed = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
        np.testing.assert_allclose(session.run(y, {x: fed}), (fed @ np.ones((2, 3))).mean(0), rtol=1e-6)


def test_a_fed_array_is_left_as_it_is(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [2])
    w = v1.Variable([0.0, 0.0])
    fed = np.ones(2, np.float32)
    session.run(w.initializer)
    step = v1.assign(w, x)
    session.run(step, {x: fed})
    session.run(v1.assign_add(w, x), {x: fed})
    assert fed.tolist() == [1.0, 1.0]


# Gradients


def test_gradients_are_tensors_of_the_graph(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [3])
    (slope,) = v1.gradients(df.reduce_sum(x**3.0), x)
    assert session.run(slope, {x: [1.0, 2.0, 3.0]}).tolist() == [3.0, 12.0, 27.0]


def test_gradients_of_gradients(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [])
    (slope,) = v1.gradients(df.exp(2.0 * x), [x])
    (curvature,) = v1.gradients(slope, [x])
    assert session.run(curvature, {x: 0.0}) == 4.0


def test_a_source_without_influence_has_no_gradient(graph: v1.Graph) -> None:
    x, y = v1.placeholder(df.float32, []), v1.placeholder(df.float32, [])
    assert v1.gradients(x * x, [y]) == [None]


def test_a_missing_gradient_may_be_zero(graph: v1.Graph, session: v1.Session) -> None:
    x, y = v1.placeholder(df.float32, []), v1.placeholder(df.float32, [2])
    (zero,) = v1.gradients(x * x, [y], unconnected_gradients="zero")
    assert session.run(zero, {y: [1.0, 2.0]}).tolist() == [0.0, 0.0]


def test_cotangents_weigh_the_targets(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [2])
    (slope,) = v1.gradients(
        [x * 2.0, x * 3.0], [x], grad_ys=[df.constant([1.0, 0.0]), df.constant([0.0, 10.0])]
    )
    assert session.run(slope, {x: [0.0, 0.0]}).tolist() == [2.0, 30.0]


def test_stopped_tensors_are_constants(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [])
    y = x * x
    (slope,) = v1.gradients(x * y, [x], stop_gradients=[y])
    assert session.run(slope, {x: 3.0}) == 9.0


def test_gradients_with_respect_to_variables(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable([1.0, 2.0])
    (slope,) = v1.gradients(df.reduce_sum(w * w), [w])
    session.run(v1.global_variables_initializer())
    assert session.run(slope).tolist() == [2.0, 4.0]


def test_a_tape_records_in_a_graph_too(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert session.run(tape.gradient(y, x), {x: 3.0}) == 6.0


def test_gradients_need_a_graph() -> None:
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        v1.gradients(df.constant(1.0), [df.constant(1.0)])


@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "function"])
def test_gradients_in_a_function_are_those_of_a_graph(compiled: bool) -> None:
    v = df.Variable(3.0)

    def slopes(x: Any) -> Any:
        y = df.cond(x > 0.0, lambda: x**3.0 * v, lambda: x)
        return df.gradients(y, [x, v]) + df.gradients(df.gradients(x**3.0, x), x)

    if compiled:
        values = [float(g) for g in df.function(slopes)(df.constant(2.0))]
    else:
        with v1.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(df.float32, [])
            values = [float(g) for g in session.run(slopes(x), {x: 2.0})]
    assert values == [36.0, 8.0, 12.0]


def test_an_unconnected_source_has_no_gradient_in_a_function() -> None:
    @df.function
    def slopes(x: Any, y: Any) -> Any:
        assert df.gradients(x * 2.0, y) == [None]
        stopped = df.gradients(x * y, [x, y], stop_gradients=[x])
        return df.gradients(x * 2.0, y, unconnected_gradients="zero") + stopped

    assert [float(g) for g in slopes(df.constant(2.0), df.constant(5.0))] == [0.0, 5.0, 2.0]


def test_gradients_of_a_variable_that_a_function_has_assigned_are_refused() -> None:
    v = df.Variable(3.0)

    @df.function
    def slope(x: Any) -> Any:
        v.assign(x * 2.0)
        return df.gradients(v * v, v)

    with pytest.raises(InvalidArgumentError, match=r"assigned in 'slope'.*v.value\(\)"):
        slope(df.constant(1.0))


def test_gradients_in_a_branch_are_of_what_the_branch_computes() -> None:
    @df.function
    def slope(x: Any) -> Any:
        y = x * x
        return df.cond(x > 0.0, lambda: df.gradients(y, x)[0], lambda: x)

    with pytest.raises(df.errors.DTypeError, match="In a branch or loop compute ys from xs"):
        slope(df.constant(1.0))


@pytest.mark.parametrize("add", [True, False])
def test_a_conditional_of_operations_is_an_operation(session: v1.Session, add: bool) -> None:
    v = v1.get_variable("v", [], initializer=v1.zeros_initializer())
    chosen = v1.placeholder(df.bool, [])
    step = v1.cond(chosen, lambda: v1.assign_add(v, 1.0).op, v1.no_op)
    session.run(v1.global_variables_initializer())
    assert session.run(step, {chosen: add}) is None
    assert session.run(v) == float(add)


def test_a_check_that_holds_always_may_be_a_dependency(session: v1.Session) -> None:
    with v1.control_dependencies([v1.assert_equal(1, 1)]):
        x = df.constant(1.0) * 2.0
    session.run(v1.group(v1.assert_equal(1, 1), x))
    assert session.run(x) == 2.0


def test_a_list_with_a_slice_is_an_index_of_several_axes(session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [None, 3])
    part = x[[slice(None), slice(0, 2)]]
    assert session.run(part, {x: [[1, 2, 3]]}).tolist() == [[1, 2]]


def test_set_shape_narrows_a_tensor_of_a_graph(session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [None, 3])
    y = x * 2.0
    y.set_shape([1, 3])
    x.set_shape([1, None])
    assert (x.shape, y.shape) == ((1, 3), (1, 3))
    assert session.run(y, {x: [[1, 2, 3]]}).tolist() == [[2, 4, 6]]
    with pytest.raises(InvalidArgumentError):
        session.run(y, {x: [[1, 2, 3], [4, 5, 6]]})


# Variables


def test_a_variable_begins_uninitialised(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(1.0)
    with pytest.raises(FailedPreconditionError, match="uninitialized"):
        session.run(w + 1.0)


def test_initialisers_run_in_the_order_of_the_program(graph: v1.Graph, session: v1.Session) -> None:
    first = v1.Variable(2.0)
    second = v1.Variable(first * 3.0)
    assert session.run(v1.global_variables_initializer()) is None
    assert session.run([first, second]) == [2.0, 6.0]


def test_each_session_has_its_own_state(graph: v1.Graph) -> None:
    w = v1.Variable(0.0)
    step, init = v1.assign_add(w, 1.0), v1.global_variables_initializer()
    one, two = v1.Session(), v1.Session()
    one.run(init)
    two.run(init)
    one.run(step)
    assert (one.run(w), two.run(w)) == (1.0, 0.0)


def test_an_assignment_happens_only_when_it_is_fetched(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(1.0)
    session.run(v1.global_variables_initializer())
    v1.assign(w, 5.0)
    assert session.run(w) == 1.0


@pytest.mark.parametrize(
    ("change", "expected"), [(v1.assign, 3.0), (v1.assign_add, 13.0), (v1.assign_sub, 7.0)]
)
def test_assignments_return_the_new_value(session: v1.Session, change: Any, expected: float) -> None:
    w = v1.Variable(10.0)
    session.run(v1.global_variables_initializer())
    assert session.run(change(w, 3.0)) == expected
    assert session.run(w) == expected


def test_assignments_of_one_run_follow_each_other(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(1.0)
    one, two = v1.assign_add(w, 1.0), v1.assign_add(w, 10.0)
    session.run(v1.global_variables_initializer())
    assert session.run([one, two]) == [2.0, 12.0]


def test_a_variable_is_fetched_as_the_run_began(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(1.0)
    step = v1.assign_add(w, 1.0)
    session.run(v1.global_variables_initializer())
    assert session.run([step, w]) == [2.0, 1.0]


def test_earlier_results_outlive_assignments(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable([1.0, 1.0])
    step = v1.assign_add(w, [1.0, 1.0])
    session.run(v1.global_variables_initializer())
    before = session.run(w)
    session.run(step)
    assert before.tolist() == [1.0, 1.0]


def test_a_read_under_a_dependency_sees_the_assignment(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(1.0)
    with v1.control_dependencies([v1.assign_add(w, 1.0)]):
        after = w.read_value() * 10.0
    session.run(v1.global_variables_initializer())
    assert [session.run(after), session.run(after)] == [20.0, 30.0]


def test_a_large_variable_is_fetched_as_the_run_began(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(df.zeros([10_000]))
    step = v1.assign_add(w, df.ones([10_000]))
    session.run(v1.global_variables_initializer())
    for run in range(3):
        before, after = session.run([w, step])
        assert set(before) == {run}
        assert set(after) == {run + 1}


def test_a_variable_has_the_graph_of_its_initializer() -> None:
    with v1.Graph().as_default() as graph:
        w = v1.Variable(4.0)
    session = v1.Session(graph=graph)
    session.run(w.initializer)
    assert session.run(w) == 4.0


def test_outside_of_its_graph_a_variable_has_no_value() -> None:
    with v1.Graph().as_default():
        w = v1.Variable(4.0)
    with pytest.raises(FailedPreconditionError, match="sessions hold its values"):
        w.numpy()


def test_a_tensor_of_another_graph_is_no_input(graph: v1.Graph) -> None:
    with v1.Graph().as_default():
        strange = df.constant(1.0) + 1.0
    with pytest.raises(InaccessibleTensorError, match="not an element of this graph"):
        strange + 1.0


def test_a_group_runs_all_of_its_parts(graph: v1.Graph, session: v1.Session) -> None:
    v, w = v1.Variable(1.0), v1.Variable(2.0)
    both = v1.group(v1.assign_add(v, 1.0), v1.assign_add(w, 1.0))
    session.run(v1.global_variables_initializer())
    assert session.run(both) is None
    assert session.run([v, w]) == [2.0, 3.0]


def test_a_graph_assigns_only_its_own_variables() -> None:
    outside = df.Variable(1.0)
    with v1.Graph().as_default(), pytest.raises(InaccessibleTensorError, match="created outside"):
        outside.assign(2.0)


def test_a_graph_reads_a_variable_from_outside_at_each_run() -> None:
    outside = df.Variable(1.0)
    with v1.Graph().as_default() as graph:
        y = outside * 2.0
    session = v1.Session(graph=graph)
    first = session.run(y)
    outside.assign(5.0)
    assert (first, session.run(y)) == (2.0, 10.0)


def test_a_model_with_ordinary_variables_builds_a_graph(graph: v1.Graph, session: v1.Session) -> None:
    w = df.Variable([[2.0]])
    y = df.constant([[3.0]]) @ w
    session.run(v1.global_variables_initializer())
    assert session.run(y).tolist() == [[6.0]]


def test_outside_of_graphs_a_variable_is_eager() -> None:
    w = v1.Variable(1.0, use_resource=True)
    v1.assign_add(w, 2.0)
    assert w.numpy() == 3.0


# Randomness


def test_a_run_draws_once_for_all_fetches(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.random_uniform([8])
    one, two = session.run([x + 0.0, x * 1.0])
    assert np.array_equal(one, two)


def test_each_run_draws_new_numbers(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.random_uniform([8])
    assert not np.array_equal(session.run(x), session.run(x))


# Graphs


def test_a_placeholder_needs_a_graph() -> None:
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        v1.placeholder(df.float32, [])


def test_nothing_runs_now_in_a_graph(graph: v1.Graph) -> None:
    assert not df.executing_eagerly()


def test_ops_run_now_again_after_the_block() -> None:
    with v1.Graph().as_default():
        pass
    assert df.executing_eagerly()


def test_the_innermost_block_is_the_default_graph(graph: v1.Graph) -> None:
    with v1.Graph().as_default() as inner:
        assert v1.get_default_graph() is inner
    assert v1.get_default_graph() is graph


def test_a_session_makes_its_graph_the_default() -> None:
    graph = v1.Graph()
    with v1.Session(graph=graph):
        assert v1.get_default_graph() is graph


def test_the_shared_default_graph_is_reset() -> None:
    before = v1.get_default_graph()
    v1.reset_default_graph()
    assert v1.get_default_graph() is not before


def test_a_nested_graph_is_not_reset(graph: v1.Graph) -> None:
    with pytest.raises(FailedPreconditionError, match="nested"):
        v1.reset_default_graph()


def test_a_finalized_graph_refuses_to_grow(graph: v1.Graph, session: v1.Session) -> None:
    x = df.constant(1.0)
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        x + 1.0


def test_a_finalized_graph_runs(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(1.0)
    step, init = v1.assign_add(w, 1.0), v1.global_variables_initializer()
    graph.finalize()
    session.run(init)
    assert session.run([step, w]) == [2.0, 1.0]


def test_runs_add_no_nodes(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [None])
    w = v1.Variable(1.0)
    step = v1.assign_add(w, df.reduce_sum(x))
    session.run(v1.global_variables_initializer())
    before = len(graph.get_operations())
    for size in (1, 2, 3, 2, 1):
        session.run([step, w], {x: np.ones(size)})
    assert len(graph.get_operations()) == before


def test_a_line_that_grows_the_graph_in_a_loop_is_named(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [])

    def lazy() -> list[Any]:
        return [session.run(x + 1.0, {x: 1.0}) for _ in range(5)]

    with pytest.warns(v1.GraphGrowthWarning, match=r"test_graph_mode\.py.*before each of 3 runs"):
        lazy()


def test_a_loop_that_only_runs_is_no_trap(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(df.float32, [])
    y = x + 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(8):
            session.run(y, {x: 1.0})


def test_a_closed_session_runs_nothing(graph: v1.Graph, session: v1.Session) -> None:
    x = df.constant(1.0)
    session.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(x)
