"""Sessions: defaults, state, no growth, threads, and errors with a remedy."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.compat import v1
from dualflow.graph_mode import session as sessions


@pytest.fixture
def graph() -> Iterator[v1.Graph]:
    with v1.Graph().as_default() as default:
        yield default


@pytest.fixture
def session(graph: v1.Graph) -> v1.Session:
    return v1.Session()


# The default session


def test_a_tensor_and_an_operation_use_the_default_session(graph: v1.Graph) -> None:
    x = v1.placeholder(v1.float32, [])
    w = v1.Variable(1.0)
    with v1.Session() as session:
        assert v1.get_default_session() is session
        w.initializer.run()
        assert (x * 2.0).eval({x: 4.0}) == 8.0
        assert v1.assign_add(w, 2.0).op.run() is None
        assert w.eval() == 3.0
    assert v1.get_default_session() is None


def test_a_session_may_be_named(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(1.0)
    w.initializer.run(session=session)
    assert (w.eval(session), (w + 1.0).eval(session=session)) == (1.0, 2.0)


def test_as_default_leaves_a_session_open(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.constant(1.0)
    with session.as_default():
        assert x.eval() == 1.0
    assert session.run(x) == 1.0


def test_the_innermost_session_is_the_default(graph: v1.Graph, session: v1.Session) -> None:
    with session.as_default(), v1.Session().as_default() as inner:
        assert v1.get_default_session() is inner


@pytest.mark.parametrize("evaluate", [lambda x: x.eval(), lambda x: x.op.run()])
def test_without_a_session_there_is_no_value(graph: v1.Graph, evaluate: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"No default session is registered\. Use `with sess\.as_default"):
        evaluate(v1.constant(1.0))


def test_a_session_of_another_graph_has_no_value(graph: v1.Graph) -> None:
    x = v1.constant(1.0)
    with v1.Session(graph=v1.Graph()), pytest.raises(ValueError, match="it runs another graph"):
        x.eval()


def test_an_interactive_session_is_the_default_at_once() -> None:
    graph = v1.Graph()
    session = v1.InteractiveSession(graph=graph)
    x = v1.constant(1.0) + 1.0
    assert (x.eval(), v1.get_default_session(), v1.get_default_graph()) == (2.0, session, graph)
    session.close()
    assert v1.get_default_session() is None
    assert df.executing_eagerly()


# Feeds


def test_a_default_may_be_fed_in_other_sizes(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder_with_default([1.0, 2.0], [None], name="x")
    total = v1.reduce_sum(x * 2.0)
    (slope,) = v1.gradients(total, [x])
    assert x.name == "x:0"
    assert [session.run(total), session.run(total, {x: [1.0, 2.0, 3.0]})] == [6.0, 12.0]
    assert session.run(slope, {x: [0.0, 0.0, 0.0]}).tolist() == [2.0, 2.0, 2.0]


def test_gradients_flow_to_a_default(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(3.0)
    (slope,) = v1.gradients(v1.placeholder_with_default(w * 2.0, []) * 5.0, [w])
    session.run(w.initializer)
    assert session.run(slope) == 10.0


def test_a_default_fits_the_placeholder(graph: v1.Graph) -> None:
    with pytest.raises(ValueError, match="doesn't fit a placeholder of shape"):
        v1.placeholder_with_default([1.0, 2.0], [3])


def test_where_ops_run_a_default_is_the_value() -> None:
    assert float(v1.placeholder_with_default(2.0, [])) == 2.0


def test_a_variable_is_fed_for_one_run(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(1.0)
    double, more = w * 2.0, v1.assign_add(w, 1.0)
    assert session.run([double, w], {w: 4.0}) == [8.0, 4.0]
    session.run(w.initializer)
    assert session.run([double, w], {w: 4.0}) == [8.0, 4.0]
    assert session.run(w) == 1.0
    assert session.run(more, {w: 4.0}) == 5.0


def test_a_variable_is_loaded_without_an_op(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable([1.0, 2.0])
    graph.finalize()
    w.load([3.0, 4.0], session)
    assert session.run(w).tolist() == [3.0, 4.0]


def test_an_initial_value_is_read_before_there_is_a_value(graph: v1.Graph, session: v1.Session) -> None:
    w = v1.Variable(3.0)
    twice = v1.Variable(w.initialized_value() * 2.0)
    session.run(twice.initializer)
    assert session.run(twice) == 6.0


def test_a_variable_of_tensorflow_2_has_an_initializer_in_a_graph(
    graph: v1.Graph, session: v1.Session
) -> None:
    variable = df.Variable(2.0)
    session.run(variable.initializer)
    assert session.run(variable + 1.0) == 3.0
    with df.init_scope():
        assert df.Variable(2.0).initializer is not None
    with v1.Graph().as_default():
        assert variable.initializer is None


def test_print_is_an_operation(graph: v1.Graph, session: v1.Session) -> None:
    printed: list[str] = []
    x = v1.placeholder(v1.float32, [])
    show = v1.print("x is", x, output_stream=printed.append, name="show")
    with v1.control_dependencies([show]):
        double = x * 2.0
    assert (show.name, session.run(x, {x: 1.0}), printed) == ("show", 1.0, [])
    session.run(show, {x: 1.0})
    session.run(double, {x: 2.0})
    assert printed == ["x is 1\n", "x is 2\n"]


@pytest.mark.parametrize("call", [df.py_function, df.numpy_function, v1.py_function])
@pytest.mark.parametrize("results", [[], None])
def test_python_without_results_is_an_operation(
    graph: v1.Graph, session: v1.Session, call: Any, results: Any
) -> None:
    calls: list[float] = []
    x = v1.placeholder(v1.float32, [])
    look = call(lambda value: calls.append(float(value)), [x], results)
    with v1.control_dependencies([look]):
        double = x * 2.0
    assert (session.run(look, {x: 1.0}), calls) == (None, [1.0])
    assert session.run([look, double, double], {x: 2.0}) == [None, 4.0, 4.0]
    assert calls == [1.0, 2.0]
    assert "test_sessions.py" in str(look.origin)


def test_print_of_the_other_namespace_is_an_operation_too(graph: v1.Graph, session: v1.Session) -> None:
    printed: list[str] = []
    session.run(df.print("here", output_stream=printed.append))
    assert printed == ["here\n"]


def test_a_function_with_python_inside_is_called_in_a_graph(graph: v1.Graph, session: v1.Session) -> None:
    @df.function
    def double(x: Any) -> Any:
        df.py_function(lambda value: None, [x], [])
        return x * 2.0

    x = v1.placeholder(v1.float32, [])
    assert session.run(double(x), {x: 3.0}) == 6.0


def test_a_callable_takes_feeds_in_order(graph: v1.Graph, session: v1.Session) -> None:
    x, y = v1.placeholder(v1.float32, []), v1.placeholder(v1.float32, [None])
    call = session.make_callable([x * y, x], [x, y])
    product, given_x = call(2.0, [1.0, 3.0])
    assert (product.tolist(), given_x) == ([2.0, 6.0], 2.0)


def test_a_fed_array_may_change_after_the_run(graph: v1.Graph, session: v1.Session) -> None:
    kept: list[Any] = []
    x = v1.placeholder(v1.float32, [2])
    y = v1.py_function(lambda t: (kept.append(t), t)[1], [x], v1.float32)
    fed = np.float32([1.0, 2.0])
    out = session.run(y, {x: fed})
    fed[:] = 0.0
    out[:] = 9.0
    assert kept[0].numpy().tolist() == [1.0, 2.0]


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])  # examples compile
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.lists(st.sampled_from(["C", "F", "strided", "list", "float64"]), min_size=1, max_size=4),
)
def test_a_run_gives_what_numpy_gives_for_any_form_of_feed(sizes: list[int], forms: list[str]) -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [None, 3])
        y = x * 2.0 + 1.0
        for size, form in zip(sizes, forms, strict=False):
            array = np.arange(size * 3, dtype=np.float32).reshape(size, 3)
            value: Any = {
                "C": array,
                "F": np.asfortranarray(array),
                "strided": np.repeat(array, 2, axis=0)[::2],
                "list": array.tolist() if size else array,
                "float64": array.astype(np.float64),
            }[form]
            result, fed = session.run([y, x], {x: value})
            np.testing.assert_array_equal(result, array * 2 + 1)
            np.testing.assert_array_equal(fed, array)
            assert result.dtype == fed.dtype == np.float32
            assert not np.shares_memory(fed, value) or isinstance(value, list)


# Fetches and what is kept between runs


def test_two_results_of_one_value_share_no_memory(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.constant([1.0, 2.0]) + 1.0
    one, two = session.run([x, x])
    one[:] = 0.0
    assert two.tolist() == [2.0, 3.0]


def test_fetches_of_other_kinds_are_not_mixed_up(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.constant(1.0)
    y = x + 1.0
    for _ in range(2):
        assert session.run(x) == 1.0
        assert session.run([x]) == [1.0]
        assert session.run((x,)) == (1.0,)
        assert session.run([[x], y]) == [[1.0], 2.0]
        assert session.run({"x": x, "none": y.op}) == {"x": 1.0, "none": None}
        assert session.run([]) == []


def test_a_list_of_fetches_may_change_between_runs(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.constant(1.0)
    fetches: list[Any] = [x]
    assert session.run(fetches) == [1.0]
    fetches[0] = x + 1.0
    assert session.run(fetches) == [2.0]


def test_many_different_fetches_are_run_right(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(v1.float32, [])
    sums = {i: x + float(i) for i in range(300)}
    for i, tensor in sums.items():
        assert session.run([tensor, x] if i % 2 else tensor, {x: 1.0}) == (
            [i + 1.0, 1.0] if i % 2 else i + 1.0
        )
    assert session.run(sums[0], {x: 5.0}) == 5.0


def test_repeated_runs_neither_add_nor_plan(
    graph: v1.Graph, session: v1.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **options: Any) -> None:
        raise AssertionError("this run is planned again")

    x = v1.placeholder(v1.float32, [None])
    w = v1.Variable(1.0)
    step = v1.train.MomentumOptimizer(0.1, 0.9).minimize(v1.reduce_mean((x * w - 1.0) ** 2.0))
    session.run(v1.global_variables_initializer())
    session.run([step, w], {x: [1.0, 2.0]})
    before = len(graph.get_operations())
    graph.finalize()
    monkeypatch.setattr(sessions, "plan", refuse)
    for _ in range(5):
        session.run([step, w], {x: [3.0, 4.0]})
    assert len(graph.get_operations()) == before
    with pytest.raises(AssertionError, match="planned again"):
        session.run([step, w], {x: [3.0, 4.0, 5.0]})


def test_a_line_outside_of_loops_is_no_trap(graph: v1.Graph, session: v1.Session, recwarn: Any) -> None:
    x = v1.placeholder(v1.float32, [])
    session.run(x + 1.0, {x: 1.0})
    session.run(x + 2.0, {x: 1.0})
    session.run(x + 3.0, {x: 1.0})
    session.run(x + 4.0, {x: 1.0})
    assert not [w for w in recwarn if issubclass(w.category, v1.GraphGrowthWarning)]


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda session, w: session.run(v1.assign_add(w, 1.0)),
        lambda session, w: session.run(v1.global_variables_initializer()),
        lambda session, w: (w * 2.0).eval(session=session),
    ],
)
def test_each_way_into_the_trap_is_named(session: v1.Session, evaluate: Callable[[Any, Any], Any]) -> None:
    w = v1.Variable(1.0)
    session.run(w.initializer)

    def loop() -> None:
        for _ in range(6):
            evaluate(session, w)

    with pytest.warns(v1.GraphGrowthWarning, match=r"test_sessions\.py"):
        loop()


# Threads


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    """Run ``work(i)`` in each of some threads, and raise what any of them raised."""
    errors: list[BaseException] = []

    def guarded(i: int) -> None:
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_threads_build_and_run_graphs_of_their_own() -> None:
    results: dict[int, Any] = {}

    def work(i: int) -> None:
        with v1.Graph().as_default(), v1.Session() as session:
            w = v1.Variable(float(i))
            step = v1.assign_add(w, 1.0)
            session.run(v1.global_variables_initializer())
            for _ in range(50):
                session.run(step)
            results[i] = session.run(w)

    in_threads(work)
    assert results == {i: i + 50.0 for i in range(4)}


def test_threads_run_one_graph_in_sessions_of_their_own() -> None:
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(v1.float32, [None])
        total = v1.Variable(0.0)
        step = v1.assign_add(total, v1.reduce_sum(x))
        start = v1.global_variables_initializer()
    results: dict[int, Any] = {}

    def work(i: int) -> None:
        session = v1.Session(graph=graph)
        session.run(start)
        for _ in range(20):
            session.run(step, {x: np.full(i + 1, 1.0, np.float32)})
        results[i] = session.run(total)

    in_threads(work)
    assert results == {i: 20.0 * (i + 1) for i in range(4)}


def test_threads_that_share_a_session_lose_no_update(graph: v1.Graph, session: v1.Session) -> None:
    count = v1.Variable(0)
    step = v1.assign_add(count, 1)
    session.run(count.initializer)
    in_threads(lambda i: [session.run(step) for _ in range(100)] and None)
    assert session.run(count) == 400


def test_a_thread_begins_outside_of_its_starters_blocks(graph: v1.Graph) -> None:
    states = []
    with v1.Session():
        in_threads(lambda i: states.append((df.executing_eagerly(), v1.get_default_session())), 1)
    assert states == [(True, None)]


# Programs in which graphs are the rule


PROGRAM = """
from threading import Thread
from dualflow.compat import v1 as tf

tf.disable_v2_behavior()
assert not tf.executing_eagerly()
x = tf.placeholder(tf.float32, [None], name="x")
w = tf.Variable(2.0, name="w")
y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * w, lambda: x - w)
(slope,) = tf.gradients(y, [w])
thread = Thread(target=lambda: tf.constant(1.0, name="from_a_thread"))
thread.start()
thread.join()
assert tf.get_default_graph().get_tensor_by_name("from_a_thread:0") is not None
sess = tf.Session()
sess.run(tf.global_variables_initializer())
print(sess.run([y, slope], {x: [1.0, 2.0]}))
with tf.Graph().as_default():
    assert not tf.global_variables()
tf.reset_default_graph()
assert not tf.global_variables()
assert tf.placeholder(tf.float32, [], name="x").name == "x:0"
try:
    with tf.GradientTape():
        tf.enable_eager_execution()
except RuntimeError as error:
    print(error)
tf.enable_eager_execution()
print(float(tf.constant(1.0) + 1.0))
"""


def test_a_program_may_make_graphs_the_rule() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert first == "[array([2., 4.], dtype=float32), np.float32(3.0)]"
    assert "must be called at program startup" in second
    assert third == "2.0"


# Runs


def test_a_run_that_fails_leaves_variables_uninitialised(graph: v1.Graph, session: v1.Session) -> None:
    index = v1.placeholder(v1.int32, [])
    w = v1.Variable(v1.gather([1.0, 2.0], v1.placeholder_with_default(5, [])))
    with pytest.raises(IndexError):
        session.run(w.initializer)
    with pytest.raises(RuntimeError, match="uninitialized"):
        session.run(w)
    assert session.run(index, {index: 1}) == 1


def test_a_while_loop_has_gradients(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(v1.float32, [])
    n = v1.placeholder(v1.int32, [])
    _, power = v1.while_loop(lambda i, p: i < n, lambda i, p: (i + 1, p * x), (0, v1.constant(1.0)))
    (slope,) = v1.gradients(power, [x])
    assert [session.run([power, slope], {x: 2.0, n: k}) for k in (0, 1, 3)] == [
        [1.0, 0.0],
        [2.0, 1.0],
        [8.0, 12.0],
    ]


def test_a_choice_has_gradients(graph: v1.Graph, session: v1.Session) -> None:
    x = v1.placeholder(v1.float32, [])
    y = v1.cond(x > 0.0, lambda: x * x, lambda: -x)
    (slope,) = v1.gradients(y, [x])
    assert [session.run(slope, {x: v}) for v in (3.0, -3.0)] == [6.0, -1.0]


def test_a_seed_makes_two_programs_draw_the_same() -> None:
    def draws() -> list[Any]:
        with v1.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(7)
            x = v1.random_normal([3])
            return [session.run(x).tolist() for _ in range(2)]

    first = draws()
    assert first == draws()
    assert first[0] != first[1]


def test_a_graph_and_its_sessions_are_freed() -> None:
    def build() -> list[weakref.ref[Any]]:
        with v1.Graph().as_default() as graph, v1.Session() as session:
            w = v1.get_variable("w", [3])
            step = v1.train.AdamOptimizer().minimize(v1.reduce_sum(w * w))
            session.run(v1.global_variables_initializer())
            for _ in range(3):
                session.run(step)
            return [weakref.ref(graph), weakref.ref(session)]

    alive = build()
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


def test_fetches_keep_the_order_and_type_of_dicts(session: v1.Session) -> None:
    a, b = v1.constant(1.0), v1.constant(2.0)
    assert list(session.run({"z": a, "a": b}).items()) == [("z", 1.0), ("a", 2.0)]
    assert list(session.run({"a": b, "z": a}).items()) == [("a", 2.0), ("z", 1.0)]
    nested, swapped = [{"z": a, "a": [b]}], [{"a": [b], "z": a}]
    assert list(session.run(nested)[0]) == ["z", "a"]
    assert list(session.run(swapped)[0]) == ["a", "z"]
    result = session.run(defaultdict(list, z=a))
    assert result["z"] == 1.0
    assert result["other"] == []


def test_initial_values_do_not_wait_for_the_block_that_creates_the_variable(
    graph: v1.Graph, session: v1.Session
) -> None:
    count = v1.get_variable("count", [], initializer=v1.zeros_initializer())
    w = v1.get_variable("w", [3], initializer=v1.ones_initializer())
    with v1.control_dependencies([v1.assign_add(count, 1.0)]):
        step = v1.train.AdamOptimizer(0.1).minimize(df.reduce_sum(w * 2.0))
        v1.get_variable("inside", [2], initializer=v1.random_normal_initializer())
        v1.Variable(7.0)
        after = count.read_value()
    session.run(v1.global_variables_initializer())
    assert session.run(count) == 0.0
    session.run(step)
    assert session.run(count) == 1.0
    assert session.run(after) == 2.0


def test_batch_statistics_of_a_placeholder_are_no_part_of_an_optimizers_slots(
    graph: v1.Graph, session: v1.Session
) -> None:
    x = v1.placeholder(df.float32, [None, 4])
    w = v1.get_variable("w", [4])
    mean = v1.get_variable("mean", [4], trainable=False, initializer=v1.zeros_initializer())
    with v1.control_dependencies([mean.assign(df.reduce_mean(x, 0))]):
        step = v1.train.AdamOptimizer(0.1).minimize(df.reduce_sum(x * w))
    session.run(v1.global_variables_initializer())
    session.run(step, {x: np.full([2, 4], 3.0)})
    assert session.run(mean).tolist() == [3.0] * 4
