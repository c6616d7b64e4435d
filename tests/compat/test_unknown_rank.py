"""Placeholders without a shape: a run computes with the shapes that it is fed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from error_cases import ErrorCases, Frames

import dualflow as df
from dualflow.compat import v1
from dualflow.graph_mode.unknown_rank import postpone

FED = {
    "number": np.float32(0.5),
    "empty": np.zeros([0], np.float32),
    "vector": np.linspace(0.1, 0.9, 4, dtype=np.float32),
    "matrix": np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3),
    "stack": np.linspace(0.1, 0.9, 24, dtype=np.float32).reshape(2, 3, 4),
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "operators": lambda x: 1.0 - x * 2.0 / (x + 1.0) ** 2 + (-x),
    "comparisons": lambda x: v1.cast((x > 0.3) & (x <= 0.8), v1.float32),
    "functions": lambda x: v1.exp(v1.multiply(x, [2.0])) + v1.nn.relu(x),
    "sum": lambda x: v1.reduce_sum(x * x),
    "mean of what is computed": lambda x: v1.reduce_mean(v1.square(v1.sin(x) - 0.5)),
    "rows": lambda x: v1.reshape(x, [-1, 1]) * [1.0, 10.0],
    "sizes": lambda x: (v1.shape(x), v1.size(x), v1.rank(x)),
    "like": lambda x: v1.ones_like(x) + v1.zeros_like(x) + x,
    "joined": lambda x: v1.concat([v1.reshape(x, [-1]), v1.reshape(x, [-1])], axis=0),
    "two kinds": lambda x: [v1.argmax(v1.reshape(x, [-1, 1]), 1), {"x": v1.abs(x)}],
}


CALLS_ON_AXES: dict[str, Callable[[Any], Any]] = {
    "sums along an axis": lambda x: (df.reduce_sum(x, axis=-1), df.reduce_logsumexp(x, axis=-1)),
    "a part": lambda x: (x[0], x[..., -1], x[..., df.newaxis], x[1:]),
    "a part up to a computed place": lambda x: (x[..., : df.rank(x)], x[df.rank(x) - 1 :, ..., None]),
    "softmax": lambda x: df.nn.softmax(x),
    "another axis": lambda x: df.expand_dims(df.cumsum(x, axis=-1), 0),
    "a fixed number of parts": lambda x: df.split(df.concat([x, x], -1), 2, -1),
    "stacked": lambda x: df.stack([x, x + 1.0], axis=-1),
    "sizes": lambda x: df.concat([df.shape(x)[:-1], [1]], 0),
    "broadcast sizes": lambda x: df.broadcast_dynamic_shape(df.shape(x), [1]),
    "of these sizes": lambda x: (df.broadcast_to(x, df.shape(x)), df.fill(df.shape(x)[:-1], 2.0)),
    "rows of sizes": lambda x: df.reshape(x, df.concat([df.shape(x)[:-1], [-1, 1]], 0)),
    "padded along computed axes": lambda x: df.pad(x, df.stack([df.zeros_like(df.shape(x)), df.shape(x)], 1)),
    "means along far axes": lambda x: df.reduce_mean(
        df.reshape(x, df.concat([[1, 1, 1], df.shape(x)], 0)), [0, 3]
    ),
    "sums along computed axes": lambda x: df.reduce_sum(x, df.range(1, df.rank(x)), keepdims=True),
    "axes in another order": lambda x: df.transpose(
        x, df.concat([df.range(1, df.rank(x)), df.where(df.rank(x) > 1, df.range(1), [0])], 0)
    ),
    "axes in an order": lambda x: df.transpose(x, df.range(df.rank(x))[::-1]),
}


@df.function
def sum_of_rows(x: Any) -> Any:
    total = 0.0
    for row in x:
        total += df.reduce_sum(row) * total + 0.5
    return total


def grown(x: Any) -> Any:
    """``x`` and its own rows, some of them by a loop whose variable grows."""
    invariants = [df.TensorShape([]), df.TensorShape(None)]
    return v1.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, v1.concat([y, x * 2.0], 0)), [v1.constant(0), x], invariants
    )[1]


CALLS_WITH_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: df.map_fn(lambda row: row * df.reduce_sum(x), x),
    "a fold": lambda x: df.foldl(lambda s, row: s * 0.5 + row, x, initializer=df.zeros_like(x)[0]),
    "a batch": lambda x: df.vectorized_map(lambda row: row * row, x),
    "branches in a loop": lambda x: df.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, df.cond(df.reduce_sum(y) > 2.0, lambda: y * x, lambda: y + x)),
        [df.constant(0), x],
    )[1],
    "one of several": lambda x: df.switch_case(df.rank(x), [lambda: x, lambda: x * 2.0, lambda: x * 3.0]),
    "a growing variable": grown,
    "a function": sum_of_rows,
}


@pytest.fixture(autouse=True)
def session() -> Iterator[v1.Session]:
    with v1.Graph().as_default(), v1.Session() as opened:
        yield opened


def same(result: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert result.keys() == expected.keys()
        result, expected = list(result.values()), list(expected.values())
    if isinstance(expected, list | tuple):
        assert type(result) is type(expected)
        for x, y in zip(result, expected, strict=True):
            same(x, y)
        return
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


# Values


@pytest.mark.parametrize("fed", FED)
@pytest.mark.parametrize("call", CALLS)
def test_results_equal_those_of_a_static_shape(session: v1.Session, call: str, fed: str) -> None:
    array = FED[fed]
    unknown, ranked = v1.placeholder("float"), v1.placeholder(v1.float32, array.shape)
    expected = session.run(CALLS[call](ranked), {ranked: array})
    same(session.run(CALLS[call](unknown), {unknown: array}), expected)


@pytest.mark.parametrize("fed", ["matrix", "stack"])
@pytest.mark.parametrize("call", CALLS_ON_AXES)
def test_functions_of_axes_compute_those_that_are_fed(session: v1.Session, call: str, fed: str) -> None:
    array = FED[fed]
    unknown, ranked = v1.placeholder("float"), v1.placeholder(v1.float32, array.shape)
    expected = session.run(CALLS_ON_AXES[call](ranked), {ranked: array})
    same(session.run(CALLS_ON_AXES[call](unknown), {unknown: array}), expected)


@pytest.mark.parametrize("call", CALLS_WITH_FUNCTIONS)
def test_python_functions_read_tensors_of_unknown_rank(session: v1.Session, call: str) -> None:
    function, scale = CALLS_WITH_FUNCTIONS[call], v1.Variable(1.5)
    session.run(scale.initializer)
    x = v1.placeholder("float")
    y = function(x * scale)
    results = [y, *v1.gradients(y, [x, scale])]
    for fed in ("vector", "stack"):
        array = FED[fed]
        ranked = v1.placeholder(v1.float32, array.shape)
        z = function(ranked * scale)
        expected = session.run([z, *v1.gradients(z, [ranked, scale])], {ranked: array})
        same(session.run(results, {x: array}), expected)


def test_an_error_of_the_user_ends_the_trace(session: v1.Session) -> None:
    calls = []

    def fails(x: Any) -> None:
        calls.append(x)
        raise KeyError("the user's")

    with pytest.raises(KeyError, match="the user's"):
        df.function(fails)(v1.placeholder("float"))
    assert len(calls) == 1


@pytest.mark.parametrize("fed", [3, [2], [2, 3], []])
def test_sizes_may_be_of_unknown_rank(session: v1.Session, fed: Any) -> None:
    sizes = v1.placeholder(df.int32)
    np.testing.assert_array_equal(session.run(df.fill(sizes, 2.0) + 1.0, {sizes: fed}), np.full(fed, 3.0))


def test_one_graph_computes_with_axes_of_each_number(session: v1.Session) -> None:
    x = v1.placeholder("float")
    turned, total = df.transpose(x, df.range(df.rank(x))[::-1]), df.reduce_sum(x, axis=-1)
    for array in (FED["vector"], FED["stack"], FED["matrix"]):
        same(session.run([turned, total], {x: array}), [array.T, array.sum(-1)])


@pytest.mark.parametrize("fed", FED)
@pytest.mark.parametrize("call", ["operators", "functions", "sum", "mean of what is computed", "rows"])
def test_gradients_are_those_of_a_known_shape(session: v1.Session, call: str, fed: str) -> None:
    array, scale = FED[fed], v1.Variable(1.5)
    session.run(scale.initializer)
    gradients = []
    for x in (v1.placeholder("float"), v1.placeholder(v1.float32, array.shape)):
        y = CALLS[call](x * scale)
        slopes = v1.gradients(y, [x, scale, y])
        (second,) = v1.gradients(v1.reduce_sum(slopes[0] ** 2), [scale])
        gradients.append(session.run([*slopes, second], {x: array}))
    same(*gradients)


def test_one_graph_is_fed_numbers_and_arrays(session: v1.Session) -> None:
    x, y = v1.placeholder("float"), v1.placeholder("float")
    w, b = v1.Variable(0.5), v1.Variable(0.1)
    predicted = v1.add(v1.multiply(x, w), b)
    cost = v1.reduce_sum(v1.pow(predicted - y, 2)) / 2.0
    step = v1.train.GradientDescentOptimizer(0.1).minimize(cost)
    session.run(v1.global_variables_initializer())
    xs, ys = np.float32([1.0, 2.0]), np.float32([3.0, 5.0])
    weight, bias = 0.5, 0.1
    for one, other in zip(xs, ys, strict=True):
        session.run(step, {x: one, y: other})
        error = one * weight + bias - other
        weight, bias = weight - 0.1 * error * one, bias - 0.1 * error
    np.testing.assert_allclose(session.run([w, b]), [weight, bias], rtol=1e-6)
    errors = xs * weight + bias - ys
    np.testing.assert_allclose(session.run(cost, {x: xs, y: ys}), (errors**2).sum() / 2, rtol=1e-5)
    session.run(step, {x: xs, y: ys})
    weight, bias = weight - 0.1 * (errors * xs).sum(), bias - 0.1 * errors.sum()
    np.testing.assert_allclose(session.run([w, b]), [weight, bias], rtol=1e-5)


def test_a_placeholder_may_be_the_learning_rate(session: v1.Session) -> None:
    rate, w = v1.placeholder(v1.float32), v1.Variable([1.0, 2.0])
    step = v1.train.GradientDescentOptimizer(rate).minimize(v1.reduce_sum(w * w))
    session.run(w.initializer)
    session.run(step, {rate: 0.25})
    assert session.run(w).tolist() == [0.5, 1.0]


def test_keep_prob_may_be_fed(session: v1.Session) -> None:
    x, keep = v1.placeholder(v1.float32, [None, 3]), v1.placeholder(v1.float32)
    dropped = v1.nn.dropout(x, keep)
    assert dropped.shape == (None, 3)
    logits = v1.matmul(dropped, v1.ones([3, 2]))
    assert session.run(logits, {x: np.ones([2, 3]), keep: 1.0}).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert set(np.unique(session.run(dropped, {x: np.ones([50, 3]), keep: 0.5}))) == {0.0, 2.0}


def test_a_default_may_be_replaced_by_any_rank(session: v1.Session) -> None:
    x = v1.placeholder_with_default([1.0, 2.0], None)
    total = v1.reduce_sum(x * 2.0)
    assert session.run([total, x], {x: [[1.0], [5.0]]})[0] == 12.0
    assert session.run(total) == 6.0


# What is known


def test_sizes_of_an_unknown_shape_are_unknown() -> None:
    shape = v1.placeholder("float").shape
    assert (shape[-1], shape[1:], shape.with_rank_at_least(1)) == (None, shape, shape)
    assert df.TensorShape(shape) is shape


def test_a_shape_is_known_where_all_ranks_agree() -> None:
    x = v1.placeholder("float")
    assert v1.reduce_sum(x * 2.0).shape == ()
    assert v1.reshape(x, [-1, 2]).shape == (None, 2)
    assert v1.shape(x).shape == (None,)
    assert (v1.size(x).dtype, (x + 1).dtype) == (v1.int32, v1.float32)


def test_an_unknown_shape_is_reported() -> None:
    x = v1.placeholder("float", name="x")
    assert (x.shape.rank, x.shape.ndims, x.get_shape().dims) == (None, None, None)
    assert str(x.shape) == "<unknown>"
    assert not x.shape.is_fully_defined()
    assert x.shape.num_elements() is None
    assert "'x:0' shape=<unknown> dtype=float32" in repr(x)
    assert str(x.spec) == "float32[...]"


def test_an_unknown_shape_equals_no_other() -> None:
    unknown = v1.placeholder("float").shape
    assert unknown == v1.placeholder("int32").shape
    assert [s for s in (v1.TensorShape([]), (), [], (None,), None) if s == unknown or unknown == s] == []
    assert len({unknown, v1.TensorShape([])}) == 2


def test_calls_have_the_names_of_their_functions() -> None:
    x = v1.placeholder("float")
    with v1.name_scope("s"):
        assert (x * 2.0).name == "s/multiply:0"
        assert v1.reduce_sum(x).op.name == "s/reduce_sum"
    assert v1.exp(x, name="grown").name == "grown:0"


# Refusals


def one_for_each_axis(x: Any) -> list[Any]:
    return [x] * len(x.shape)


def rows_with_an_assignment(x: Any) -> Any:
    scale = v1.Variable(1.0, use_resource=True)
    return v1.map_fn(lambda row: row * scale.assign(2.0), x)


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "its number of axes": (
        lambda x: len(x.shape),
        "rank of a tensor is unknown where it is needed. Give the",
    ),
    "its sizes": (lambda x: x.shape.as_list(), "rank of a tensor is unknown where it is needed. Give the"),
    "a list of its sizes": (
        lambda x: list(x.shape),
        "rank of a tensor is unknown where it is needed. Give the",
    ),
    "a function that assigns a variable": (
        rows_with_an_assignment,
        "map_fn assigns a variable, and reads a tensor of unknown rank. Give the placeholder a shape",
    ),
    "no tensor": (lambda x: postpone(df.zeros, ([2],), {}), "zeros reads no tensor of unknown rank"),
    "a call that no rank allows": (
        lambda x: v1.matmul(x, v1.ones([3])),
        r"matmul can't be called with a tensor of unknown rank\. Give the placeholder .*takes matrices",
    ),
    "as many results as there are rows": (
        lambda x: v1.unstack(x),
        "can't be called with a tensor of unknown rank. Give the placeholder a shape",
    ),
    "as many results as the rank": (
        lambda x: postpone(one_for_each_axis, (x,), {}),
        "one_for_each_axis returns other structures or dtypes for other ranks, and takes no tensor of",
    ),
    "what returns nothing": (
        lambda x: v1.print(x),
        "print returns no tensor, and takes none of unknown rank. Give the",
    ),
}


class TestErrorMessages(ErrorCases):
    cases: ClassVar = {
        name: (partial(lambda call: call(v1.placeholder("float")), call), (ValueError, TypeError), message)
        for name, (call, message) in CASES.items()
    }
    frames = Frames.ANY
    raised_in = ("graph_mode/unknown_rank.py",)


# Assertions


ASSERTIONS: dict[str, tuple[Callable[[Any], Any], Any, Any, str]] = {
    "elements": (df.debugging.assert_non_negative, [[0.0, 1.0]], [2.0, -1.0], "x >= 0 did not hold"),
    "pairs": (lambda x: df.debugging.assert_less(x, 1.0), 0.5, [[0.5, 2.0]], "x < y did not hold"),
    "in the way of TensorFlow 1": (lambda x: v1.assert_equal(x, 1.0), [1.0], 2.0, "x == y did not hold"),
    "a rank": (lambda x: df.debugging.assert_rank(x, 1), [1.0], 2.0, "Expected a tensor of rank 1"),
    "a high rank": (
        lambda x: df.debugging.assert_rank_at_least(x, 5, message="volumes"),
        np.ones([1] * 6),
        [1.0],
        "volumes. Expected a tensor of rank 5 or more",
    ),
    "one of several ranks": (lambda x: v1.assert_rank_in(x, [0, 2]), 1.0, [1.0], "tensor of rank 0 or 2"),
}


@pytest.mark.parametrize("case", ASSERTIONS)
def test_a_run_checks_what_it_is_fed(session: v1.Session, case: str) -> None:
    assertion, right, wrong, message = ASSERTIONS[case]
    x = v1.placeholder("float")
    with v1.control_dependencies([assertion(x)]):
        y = df.identity(x)
    same(session.run(y, {x: right}), np.float32(right))
    with pytest.raises(df.errors.InvalidArgumentError, match=message):
        session.run(y, {x: wrong})


def test_a_variable_takes_its_own_shape_only(session: v1.Session) -> None:
    x, w = v1.placeholder("float"), v1.Variable([1.0, 2.0])
    change = w.assign(x * 2.0)
    session.run(w.initializer)
    assert session.run(change, {x: [3.0, 4.0]}).tolist() == [6.0, 8.0]
    with pytest.raises(ValueError, match=r"has shape \(2,\) and can't hold a value of shape \(3,\)"):
        session.run(change, {x: [1.0, 2.0, 3.0]})
    assert session.run(w).tolist() == [6.0, 8.0]


def test_shapes_that_do_not_fit_are_an_error_of_the_run(session: v1.Session) -> None:
    x, y = v1.placeholder("float"), v1.placeholder("float")
    total = v1.add(x, y)
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\) do not broadcast"):
        session.run(total, {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]})
    assert session.run(total, {x: [1.0, 2.0], y: 1.0}).tolist() == [2.0, 3.0]


def test_an_unfed_placeholder_is_named(session: v1.Session) -> None:
    x = v1.placeholder("float", name="x")
    with pytest.raises(ValueError, match=r"feed a value for placeholder tensor 'x:0'.* <unknown>"):
        session.run(x * 2.0)


def test_the_rate_of_dropout_is_one_number() -> None:
    for rate in ([0.5, 0.5], v1.placeholder(v1.float32, [2])):
        with pytest.raises(ValueError, match=r"one number, not of shape \(2,\)"):
            v1.nn.dropout(v1.ones([2]), rate=rate)


def test_an_array_that_changes_before_the_run_is_what_it_was(session: v1.Session) -> None:
    x, array = v1.placeholder("float"), np.float32([1.0, 2.0])
    product, total = v1.multiply(x, array), x + array
    array[:] = 100.0
    assert [r.tolist() for r in session.run([product, total], {x: 3.0})] == [[3.0, 6.0], [4.0, 5.0]]


def test_a_size_of_a_tensor_of_unknown_rank_is_an_argument(session: v1.Session) -> None:
    x, i = v1.placeholder("float"), v1.placeholder(v1.int32, [2])
    chosen = v1.reduce_sum(x * v1.one_hot(i, v1.shape(x)[-1]), axis=-1)
    assert session.run(chosen, {x: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], i: [2, 0]}).tolist() == [3.0, 4.0]
