"""``vmap``: a function of one row runs over all rows at once, with the results of a loop over the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError, OutOfRangeError

vmap = df.autodiff.vmap
X = df.constant(np.linspace(-1.5, 2.0, 12).reshape(4, 3))


def collatz(n):
    iterations = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        iterations += 1
    return iterations


def branch(row):
    if df.reduce_sum(row) > 0.5:
        return df.sqrt(df.reduce_sum(row)) * row
    return -row


def loop_over_elements(row):
    total = df.constant(0.0, df.float64)
    for x in row:
        total = 0.5 * total + x * x
    return total


def sum_until(row):
    i, total = df.constant(0), df.constant(0.0, df.float64)
    while i < 3 and total < 1.0:
        total, i = total + row[i] ** 2, i + 1
    return total


def gradient_through_while(row):
    """A loop whose number of iterations depends on the numbers of the row."""
    with df.GradientTape() as tape:
        tape.watch(row)
        total, factor = df.constant(0.0, df.float64), df.reduce_sum(row) * row[0] + 1.5
        while df.abs(total) < 4.0:
            total = total * factor + df.sqrt(1.0 + row[1] ** 2)
    return tape.gradient(total, row), total


def value_of_while(row):
    return gradient_through_while(row)[1]


def squared_gradient_through_while(row):
    return df.reduce_sum(gradient_through_while(row)[0] ** 2)


def gradient_through_equal_loops(row):
    """A loop with as many iterations for all rows."""
    with df.GradientTape() as tape:
        tape.watch(row)
        i, total = df.constant(0), row[0]
        while i * i < 20:
            total, i = df.sin(total * row[1]) + row[2], i + 1
    return tape.gradient(total, row)


def gradient_through_no_iterations(row):
    with df.GradientTape() as tape:
        tape.watch(row)
        total = 3.0 * row[0]
        while total > 100.0:
            total = total / 2.0
    return tape.gradient(total, row)


def scan_rows(row):
    return df.scan(lambda a, x: a * x + 1.0, row)


FUNCTIONS = {
    "elements": lambda row: df.exp(row) * row,
    "products": lambda row: df.linalg.matvec(df.ones([5, 3], df.float64), row),
    "a row of numbers with a matrix": lambda row: df.tensordot(
        row, df.reshape(df.range(6.0, dtype=df.float64), [3, 2]), 1
    ),
    "sorted": lambda row: df.sort(row)[::-1],
    "picked by the row": lambda row: df.gather(row, df.argsort(row)),
    "picked from what is shared": lambda row: df.gather(
        df.constant([1.0, 2.0, 4.0]), df.argsort(row), axis=0
    ),
    "scattered": lambda row: df.scatter_nd(df.argsort(row)[:, None], row, [4]),
    "solved": lambda row: df.linalg.solve(df.linalg.diag(row**2 + 1.0), row[:, None]),
    "convolved": lambda row: df.nn.conv1d(row[None, :, None], df.ones([2, 1, 2], df.float64), 1, "SAME"),
    "branch": branch,
    "loop over elements": loop_over_elements,
    "loop while a condition holds": sum_until,
    "scan": scan_rows,
    "gradient": df.autodiff.grad(lambda row: df.reduce_sum(df.sin(row) * row)),
    "gradient of a branch": df.autodiff.grad(
        lambda row: df.cond(row[0] > 0.0, lambda: df.reduce_sum(df.sqrt(row[0]) * row), lambda: -row[1])
    ),
    "gradient of a loop whose iterations differ": gradient_through_while,
    "gradient of a loop with iterations for all": gradient_through_equal_loops,
    "gradient of a loop without iterations": gradient_through_no_iterations,
    "hessian": df.autodiff.hessian(lambda row: df.reduce_prod(row)),
    "hessian of a loop whose iterations differ": df.autodiff.hessian(value_of_while),
    "gradients of gradients of a loop": df.autodiff.grad(squared_gradient_through_while),
    "tangent": lambda row: df.autodiff.jvp(df.sin, [row], [row])[1],
    "structure": lambda row: {"a": row[0], "b": (row[1:], 2.0 * row)},
}


@pytest.fixture(params=FUNCTIONS, ids=str)
def fn(request):
    return FUNCTIONS[request.param]


def same(result, expected):
    def check(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)

    df.nest.map_structure(check, result, expected)


def one_by_one(fn, x):
    """Each row by itself, in a trace, where the function's control flow is converted."""
    alone = df.function(fn)
    rows = [alone(row) for row in df.unstack(x)]
    return df.nest.map_structure(lambda *leaves: np.stack(leaves), *rows)


def test_rows_get_what_each_gets_by_itself(fn):
    same(vmap(fn)(X), one_by_one(fn, X))


def test_compiled_rows_get_the_same(fn):
    same(df.function(vmap(fn))(X), vmap(fn)(X))


def test_gradients_flow_through_rows(fn):
    def total(f, x):
        return df.add_n([df.reduce_sum(df.cast(y, df.float64) ** 2) for y in df.nest.flatten(f(x))])

    with df.GradientTape() as tape:
        tape.watch(X)
        value = total(vmap(fn), X)
    gradient = tape.gradient(value, X, unconnected_gradients="zero")
    rows = []
    alone = df.function(fn)
    for row in df.unstack(X):
        with df.GradientTape() as tape:
            tape.watch(row)
            value = total(alone, row)
        rows.append(tape.gradient(value, row, unconnected_gradients="zero").numpy())
    np.testing.assert_allclose(gradient, np.stack(rows), rtol=1e-9, atol=1e-12)


def test_no_rows_give_no_results():
    assert vmap(lambda row: df.reduce_sum(row))(df.zeros([0, 3])).shape == (0,)


def test_each_row_loops_as_often_as_it_needs():
    assert vmap(collatz)(df.range(1, 8)).numpy().tolist() == [0, 1, 7, 2, 5, 8, 16]


def test_maps_nest():
    table = vmap(vmap(lambda x, y: x * y, (None, 0)), (0, None))(df.range(3), df.range(4))
    np.testing.assert_array_equal(table, np.multiply.outer(np.arange(3), np.arange(4)))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rows_may_be_along_any_axis(axis):
    result = vmap(df.cumsum, in_axes=axis, out_axes=axis)(X)
    np.testing.assert_allclose(result, np.cumsum(X, 0 if axis else 1))


def test_axes_are_given_by_structure():
    def fn(pair, scale):
        return {"sum": pair["a"] + pair["b"], "scale": scale * 2}

    result = vmap(fn, in_axes=({"a": 0, "b": None}, None), out_axes={"sum": 0, "scale": None})(
        {"a": df.constant([1, 2]), "b": df.constant(10)}, df.constant(3)
    )
    assert result["sum"].numpy().tolist() == [11, 12]
    assert result["scale"].numpy().tolist() == 6


def test_keyword_arguments_have_rows():
    assert vmap(lambda x, *, by: x * by)(df.constant([1, 2]), by=df.constant([3, 4])).numpy().tolist() == [
        3,
        8,
    ]


def test_python_values_are_shared():
    assert vmap(lambda x, n: x**n, (0, None))(df.constant([2, 3]), 2).numpy().tolist() == [4, 9]


def test_random_numbers_differ_from_row_to_row():
    df.random.set_seed(1)
    drawn = vmap(lambda: df.random.normal([3]), axis_size=4)().numpy()
    assert len(np.unique(drawn)) == 12


def test_random_rows_are_those_of_one_row_after_another():
    df.random.set_seed(1)
    at_once = vmap(lambda x: x + df.random.uniform([2]), axis_size=3)(df.zeros([3, 2])).numpy()
    df.random.set_seed(1)
    np.testing.assert_array_equal(at_once, df.random.uniform([3, 2]).numpy())


def test_keys_of_rows_decide_their_numbers():
    seeds = df.constant([[1, 2], [3, 4], [1, 2]])
    drawn = vmap(lambda seed: df.random.stateless_normal([5], seed))(seeds).numpy()
    for seed, row in zip(seeds.numpy(), drawn, strict=True):
        np.testing.assert_array_equal(row, df.random.stateless_normal([5], seed))


def test_an_assignment_that_all_rows_share_is_made_once():
    calls = df.Variable(0)

    def fn(x):
        calls.assign_add(1)
        return x * 2

    vmap(fn)(X)
    assert calls.numpy() == 1


def test_variables_are_read_and_differentiated():
    w = df.Variable([1.0, 2.0, 3.0], dtype=df.float64)
    with df.GradientTape() as tape:
        y = df.reduce_sum(vmap(lambda row: df.reduce_sum(w * row))(X))
    np.testing.assert_allclose(tape.gradient(y, w), np.sum(X, 0))


@pytest.mark.parametrize("size", [2, 40], ids=["few elements", "many elements"])
def test_gradients_reach_tensors_that_the_function_captures(size):
    w = df.constant(np.arange(1.0, size + 1))
    x = df.constant(np.linspace(0, 1, 3 * size).reshape(3, size))
    with df.GradientTape() as tape:
        tape.watch(w)
        y = vmap(lambda row: df.cond(row[0] < 0.5, lambda: df.reduce_sum(w * row), lambda: w[0]))(x)
    expected = x.numpy()[x.numpy()[:, 0] < 0.5].sum(0)
    expected[0] += np.sum(x.numpy()[:, 0] >= 0.5)
    np.testing.assert_allclose(tape.gradient(y, w), expected)


def test_gradients_per_example_differ():
    w = df.constant([[1.0], [2.0], [3.0]], df.float64)
    loss = df.autodiff.grad(lambda w, x: df.reduce_sum((x[None] @ w) ** 2))
    result = vmap(loss, (None, 0))(w, X)
    expected = 2 * np.einsum("bi,bo->bio", X, X.numpy() @ w.numpy())
    np.testing.assert_allclose(result, expected)


def test_a_branch_that_no_row_takes_may_be_one_that_fails():
    row = df.constant([1, 2])
    assert vmap(lambda i: df.cond(i > 1, lambda: df.gather(row, i), lambda: i))(row - 1).numpy().tolist() == [
        0,
        1,
    ]


def test_rows_that_a_branch_is_not_for_raise_no_error():
    row = df.constant([10, 20])
    result = vmap(lambda i: df.cond(i < 2, lambda: df.gather(row, i), lambda: -i))(df.range(4))
    assert result.numpy().tolist() == [10, 20, -2, -3]


def test_rows_that_a_branch_is_for_raise_theirs():
    row = df.constant([10, 20])
    with pytest.raises(OutOfRangeError):
        vmap(lambda i: df.cond(i > 0, lambda: df.gather(row, i), lambda: -i))(df.range(4))


def test_gradients_are_finite_where_another_branch_has_infinite_ones():
    x = df.constant([-1.0, 0.0, 4.0])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = vmap(lambda v: df.cond(v > 0, lambda: df.sqrt(v), lambda: v))(x)
    assert tape.gradient(y, x).numpy().tolist() == [1.0, 1.0, 0.25]


def test_a_mapped_function_is_one_graph_without_loops():
    compiled = df.function(vmap(lambda row: df.reduce_sum(df.exp(row))))
    compiled(X)
    (concrete,) = compiled.concrete_functions
    assert not [n for n in concrete.graph.nodes if n.effect is not None or n.op.name == "loop"]


def test_an_op_without_a_batching_rule_runs_row_by_row_with_a_warning():
    with pytest.warns(UserWarning, match="one element after the other"):
        result = df.vectorized_map(lambda row: df.unique(row).y, df.constant([[1, 1], [2, 2]]))
    assert result.numpy().tolist() == [[1], [2]]


def test_without_the_fallback_it_is_refused():
    with pytest.raises(InvalidArgumentError, match="unique"):
        df.vectorized_map(lambda row: df.unique(row).y, df.ones([2, 2]), fallback_to_while_loop=False)


@pytest.mark.parametrize("run", [lambda f: f, df.function], ids=["eager", "function"])
def test_vectorized_map_broadcasts_a_first_size_of_1(run: Callable[[Any], Any]) -> None:
    x, y = df.reshape(df.range(6.0), [3, 2]), df.constant([[10.0, 20.0]])
    for first, second in [(x, y), (y, x), (y, y[:, 0])]:
        add = run(lambda x, y: df.vectorized_map(lambda rows: rows["x"] + rows["y"], {"x": x, "y": y}))
        assert add(first, second).numpy().tolist() == (first + second).numpy().tolist()
