"""Functions over rows: the same results eagerly, unrolled and as one node, with gradients of any order."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.function.control.scan_loop import UNROLL_LIMIT

LENGTHS = [1, 3, UNROLL_LIMIT, UNROLL_LIMIT + 1]
MANY = UNROLL_LIMIT + 5


def ops(function):
    """The names of the ops in the graphs of a function."""
    return {n.op.name for c in function.concrete_functions for n in c.graph.nodes}


def rows(n, width=2):
    return df.constant(np.linspace(0.5, 1.5, n * width).reshape(n, width))


def acc(a, r):
    return 0.5 * a * df.reduce_sum(r) + r


CASES = {
    "map_fn": lambda x: df.map_fn(lambda r: r * r[0], x),
    "vectorized_map": lambda x: df.vectorized_map(lambda r: {"a": df.reduce_sum(r * r)}, x)["a"],
    "scan": lambda x: df.scan(acc, x),
    "scan in reverse": lambda x: df.scan(acc, x, reverse=True),
    "scan from a value": lambda x: df.scan(acc, x, df.constant([1.0, 2.0], df.float64)),
    "foldl": lambda x: df.foldl(acc, x),
    "foldr": lambda x: df.foldr(acc, x, df.constant([1.0, 2.0], df.float64)),
}


@pytest.fixture(params=CASES, ids=str)
def over(request):
    """Each way to go over rows, as a function of a tensor."""
    return CASES[request.param]


@pytest.mark.parametrize("n", LENGTHS)
def test_compiled_results_equal_eager_ones(over, n):
    x = rows(n)
    np.testing.assert_allclose(df.function(over)(x), over(x), rtol=1e-12)


@pytest.mark.parametrize("n", LENGTHS)
def test_compiled_gradients_equal_eager_ones(over, n):
    x = rows(n)

    def gradient(f):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(f(x) ** 2)
        return tape.gradient(y, x)

    np.testing.assert_allclose(gradient(df.function(over)), gradient(over), rtol=1e-12)


def test_compiled_second_derivatives_equal_eager_ones(over):
    x = rows(MANY)

    def second(f):
        with df.GradientTape() as outer:
            outer.watch(x)
            with df.GradientTape() as inner:
                inner.watch(x)
                y = df.reduce_sum(f(x) ** 3)
            g = inner.gradient(y, x)
        return outer.gradient(g, x)

    np.testing.assert_allclose(second(df.function(over)), second(over), rtol=1e-12)


@pytest.mark.parametrize("n", [3, MANY])
def test_gradients_reach_what_the_function_reads_from_outside(n):
    x, w, v = rows(n), df.constant(0.5, df.float64), df.Variable(2.0, dtype=df.float64)

    def gradients(wrap):
        f = wrap(lambda x, w: df.scan(lambda a, r: a * w + r * v, x))
        with df.GradientTape() as tape:
            tape.watch(w)
            y = df.reduce_sum(f(x, w))
        return tape.gradient(y, [w, v])

    np.testing.assert_allclose(gradients(df.function), gradients(lambda f: f), rtol=1e-12)


def test_the_same_tensor_may_be_rows_and_outside():
    x = rows(MANY)

    def gradient(f):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(f(x))
        return tape.gradient(y, x)

    def f(x):
        return df.map_fn(lambda r: r * df.reduce_sum(x * x), x)

    np.testing.assert_allclose(gradient(df.function(f)), gradient(f), rtol=1e-12)


def test_gradients_of_complex_rows_equal_eager_ones():
    x = df.constant(np.linspace(0, 1, MANY) + 1j)

    def gradient(f):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x).numpy()

    def f(x):
        return df.foldl(lambda a, r: 0.5 * a * r + r, x)

    np.testing.assert_allclose(gradient(df.function(f)), gradient(f), rtol=1e-12)


@pytest.mark.parametrize(("n", "nodes"), [(UNROLL_LIMIT, set()), (UNROLL_LIMIT + 1, {"loop"})])
def test_many_rows_are_one_node(n, nodes):
    f = df.function(CASES["map_fn"])
    f(rows(n))
    assert ops(f) & {"loop"} == nodes


def test_scan_gives_running_totals():
    assert df.scan(lambda a, e: a + e, df.constant([1, 2, 3, 4])).numpy().tolist() == [1, 3, 6, 10]


def test_a_reversed_scan_keeps_results_next_to_their_rows():
    result = df.scan(lambda a, e: a + e, df.constant([1, 2, 3, 4]), reverse=True)
    assert result.numpy().tolist() == [10, 9, 7, 4]


@pytest.mark.parametrize(("fold", "expected"), [(df.foldl, 123), (df.foldr, 321)])
def test_folds_go_from_their_own_end(fold, expected):
    assert int(fold(lambda a, e: 10 * a + e, df.constant([1, 2, 3]))) == expected


@pytest.mark.parametrize("n", [3, MANY])
def test_elems_and_results_are_structures(n):
    def f(a, b):
        return df.map_fn(
            lambda e: {"sum": e[0] + df.cast(e[1], df.float32), "first": (e[1],)},
            (a, b),
            fn_output_signature={"sum": df.float32, "first": (df.int32,)},
        )

    for way in (f, df.function(f)):
        result = way(df.ones([n]), df.range(n))
        assert result["sum"].numpy().tolist() == [i + 1.0 for i in range(n)]
        assert result["first"][0].numpy().tolist() == list(range(n))


def test_the_value_of_a_scan_is_a_structure():
    def step(value, row):
        return {"n": value["n"] + 1, "total": value["total"] + row}

    result = df.scan(step, df.constant([1.0, 2.0]), {"n": 0, "total": 0.0})
    assert result["n"].numpy().tolist() == [1, 2]
    assert result["total"].numpy().tolist() == [1.0, 3.0]


def test_another_dtype_must_be_declared():
    x = df.constant([1, 2])
    with pytest.raises(InvalidArgumentError, match="fn_output_signature"):
        df.map_fn(lambda e: df.cast(e, df.float32), x)
    result = df.map_fn(lambda e: df.cast(e, df.float32), x, fn_output_signature=df.float32)
    assert result.dtype is df.float32


def test_a_result_is_held_to_the_shape_declared():
    with pytest.raises(InvalidArgumentError, match="fn_output_signature"):
        df.map_fn(lambda e: e, df.ones([2, 3]), fn_output_signature=df.TensorSpec([4]))


def test_another_structure_must_be_declared():
    with pytest.raises(InvalidArgumentError, match="fn_output_signature"):
        df.map_fn(lambda e: e[0], (df.ones([2]), df.ones([2])))


@pytest.mark.parametrize("elems", [df.constant(1.0), (df.ones([2]), df.constant(1.0)), ()])
def test_scalars_have_no_rows(elems):
    with pytest.raises(InvalidArgumentError, match=r"1\+ dimensional"):
        df.map_fn(lambda e: e, elems)


@pytest.mark.parametrize("sizes", [(None, 3), (3, None)])
def test_elems_may_have_static_and_dynamic_lengths(sizes):
    add = df.function(
        lambda x, y: df.map_fn(lambda row: row[0] + row[1], (x, y), fn_output_signature=df.float32),
        input_signature=[df.TensorSpec([size]) for size in sizes],
    )
    assert add(df.ones([3]), df.ones([3])).numpy().tolist() == [2, 2, 2]


def test_elems_of_different_lengths_are_an_error():
    with pytest.raises(InvalidArgumentError, match="equal first sizes"):
        df.map_fn(lambda e: e, (df.ones([2]), df.ones([3])))


@pytest.mark.parametrize("n", [3, MANY])
def test_loop_variables_keep_their_dtype_and_shape(mode, n):
    with pytest.raises(DTypeError, match="cast it"):
        mode(lambda x: df.foldl(lambda a, e: df.cast(a, df.float64), x))(df.ones([n]))
    with pytest.raises(InvalidArgumentError, match="shape"):
        mode(lambda x: df.foldl(lambda a, e: df.stack([a, e]), x))(df.ones([n]))


def test_no_rows_give_results_of_the_shape_that_is_declared(mode):
    x = df.zeros([0, 3])
    spec = df.TensorSpec([2, 3])
    result = mode(lambda x: df.map_fn(lambda r: df.stack([r, r]), x, fn_output_signature=spec))(x)
    assert result.shape == (0, 2, 3)
    assert mode(lambda x: df.scan(lambda a, r: a + r, x, df.zeros([3])))(x).shape == (0, 3)
    assert float(mode(lambda x: df.foldl(lambda a, r: a + r[0], x, 7.0))(x)) == 7.0


def test_without_a_declared_shape_no_rows_have_that_of_the_functions_result(mode):
    x = df.zeros([0, 3])
    assert mode(lambda x: df.map_fn(lambda r: df.stack([r, r]), x))(x).shape == (0, 2, 3)
    assert mode(lambda x: df.map_fn(df.cumsum, x))(df.zeros([0, 2])).shape == (0, 2)


@pytest.mark.parametrize("results", [lambda r: (r, r * 2.0), lambda r: [r], lambda r: {"x": r}])
def test_results_in_a_structure_need_a_signature(results, mode):
    with pytest.raises(InvalidArgumentError, match="has not the expected structure; declare another"):
        mode(lambda x: df.map_fn(results, x))(df.ones([2]))
    assert df.map_fn(lambda r: [1.0, 2.0], df.ones([2])).shape == (2, 2)


def test_eagerly_no_rows_call_nothing():
    calls = []
    x = df.zeros([0, 3])
    df.map_fn(lambda r: calls.append(r), x, fn_output_signature=df.TensorSpec([3]))
    df.scan(lambda a, r: calls.append(r), x, df.zeros([3]))
    df.foldr(lambda a, r: calls.append(r), x, df.zeros([3]))
    assert calls == []


def test_no_rows_and_no_first_value_are_an_error():
    with pytest.raises(InvalidArgumentError, match="initializer"):
        df.scan(lambda a, r: a, df.zeros([0]))


@pytest.mark.parametrize("n", [3, MANY])
def test_variables_are_assigned_row_by_row(n):
    def total(way):
        v = df.Variable(0.0)

        def f(x):
            return df.map_fn(lambda e: v.assign_add(e) + 0.0, x)

        result = way(f)(df.ones([n]))
        return result.numpy().tolist(), float(v)

    assert total(df.function) == total(lambda f: f) == ([i + 1.0 for i in range(n)], float(n))


@pytest.mark.parametrize("n", [3, MANY])
def test_python_is_called_once_for_each_row(n):
    calls = []

    def call(e):
        return df.py_function(lambda v: calls.append(int(v)) or v, [e], df.int32)

    df.function(lambda x: df.map_fn(call, x))(df.range(n))
    assert calls == list(range(n))


def test_steps_that_draw_once_have_a_gradient():
    x = df.ones([MANY])
    f = df.function(lambda x: df.map_fn(lambda e: e * df.random.normal([]), x))
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(tape.gradient(y, x), y)
    assert len(set(y.numpy().tolist())) > 1


def test_steps_that_draw_twice_have_gradients():
    x = df.ones([MANY])
    f = df.function(lambda x: df.map_fn(lambda e: e * df.random.normal([]) * df.random.uniform([]), x))
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), y, rtol=1e-6)
    assert len(set(y.numpy().tolist())) > 1


@pytest.mark.parametrize("n", [3, MANY])
def test_maps_nest(n):
    def f(x):
        return df.map_fn(lambda r: df.scan(lambda a, e: a * e, r), x)

    x = rows(n, MANY)
    np.testing.assert_allclose(df.function(f)(x), np.cumprod(x.numpy(), 1), rtol=1e-12)


RAGGED = df.ragged.constant([[1.0, 2.0], [], [3.0]])


def doubled_rows(x):
    return df.map_fn(lambda row: df.cast(df.concat([row, 2 * row], 0), df.float64), x)


def test_the_vectors_of_a_ragged_tensor_are_mapped_to_others(mode):
    f = mode(doubled_rows)
    assert f(RAGGED).to_list() == [[1.0, 2.0, 2.0, 4.0], [], [3.0, 6.0]]
    assert f(RAGGED).dtype is df.float64
    assert mode(lambda x: df.map_fn(lambda row: row, x))(RAGGED[:0]).to_list() == []


def test_the_strings_of_a_ragged_tensor_are_mapped(mode):
    words = df.ragged.constant([["a", "b", "a"], [], ["c"]])
    f = mode(lambda x: df.map_fn(lambda row: df.unique(row).y, x))
    assert f(words).to_list() == [[b"a", b"b"], [], [b"c"]]


def test_a_signature_stacks_the_results_of_ragged_rows(mode):
    def f(x, weights):
        def row(pair):
            return {"n": df.size(pair[0]), "sum": df.reduce_sum(pair[0]) * pair[1]}

        return df.map_fn(row, (x, weights), fn_output_signature={"n": df.int32, "sum": df.TensorSpec([2])})

    result = mode(f)(RAGGED, df.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert result["n"].numpy().tolist() == [2, 0, 1]
    assert result["sum"].numpy().tolist() == [[3.0, 6.0], [0.0, 0.0], [15.0, 18.0]]


@pytest.mark.parametrize("back_prop", [True, False])
def test_gradients_flow_through_ragged_rows(mode, back_prop):
    def f(x):
        with df.GradientTape() as tape:
            tape.watch(x.values)
            y = df.map_fn(lambda row: row * row, x, back_prop=back_prop).values
        return tape.gradient(y, x.values, unconnected_gradients="zero")

    assert mode(f)(RAGGED).numpy().tolist() == ([2.0, 4.0, 6.0] if back_prop else [0.0] * 3)
