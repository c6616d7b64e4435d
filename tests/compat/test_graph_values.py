"""Values of graph mode, as TensorFlow 1 has them: gradients of complex numbers and integers, feeds, seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1


@pytest.fixture
def graph() -> Iterator[v1.Graph]:
    graph = v1.Graph()
    with graph.as_default():
        yield graph


def test_gradients_of_complex_numbers_are_conjugated(graph: v1.Graph) -> None:
    z = v1.placeholder(v1.complex128, [])
    (plain,) = v1.gradients(z * z, z, grad_ys=df.constant(1 + 0j))
    (weighted,) = v1.gradients(z * z, z, grad_ys=df.constant(1 + 1j))
    (uphill,) = v1.gradients(df.abs(z), z)
    result = v1.Session(graph=graph).run([plain, weighted, uphill], {z: 1 + 2j})
    np.testing.assert_allclose(result, [2 - 4j, (1 + 1j) * (2 - 4j), (1 + 2j) / 5**0.5])


def test_integers_have_no_gradient(graph: v1.Graph) -> None:
    n = v1.placeholder(v1.int32, [2])
    counter = v1.get_variable("counter", initializer=df.constant([1, 2]))
    assert v1.gradients(n * 2, n) == [None]
    assert v1.gradients(counter * 2, counter) == [None]
    assert v1.gradients(df.cast(counter, df.float32), counter) == [None]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int32", 2**33), ("int32", -(2**31) - 1), ("int8", 128), ("uint8", -1), ("int64", 2**70), ("bool", 2)],
)
def test_an_integer_that_the_dtype_does_not_have_can_not_be_fed(
    graph: v1.Graph, dtype: str, value: int
) -> None:
    x = v1.placeholder(dtype, [])
    with pytest.raises(TypeError, match=f"feed value {value} .* not compatible .*{dtype}"):
        v1.Session(graph=graph).run(x, {x: value})


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int32", -(2**31)), ("uint8", 255), ("bool", 1), ("float32", 2**40), ("int64", 2**62)],
)
def test_an_integer_that_the_dtype_has_is_fed(graph: v1.Graph, dtype: str, value: int) -> None:
    x = v1.placeholder(dtype, [])
    assert v1.Session(graph=graph).run(x, {x: value}) == value


def test_a_dict_of_predicates_and_functions(graph: v1.Graph) -> None:
    x = v1.placeholder(v1.float32, [])
    result = v1.case({x > 2.0: lambda: x * 2.0, x < 3.0: lambda: -x}, exclusive=True)
    session = v1.Session(graph=graph)
    assert [session.run(result, {x: at}) for at in (1.0, 5.0)] == [-1.0, 10.0]
    with pytest.raises(df.errors.InvalidArgumentError, match="several predicates"):
        session.run(result, {x: 2.5})


# random numbers

DRAWS = {
    "uniform": lambda seed=None: v1.random_uniform([4], seed=seed),
    "normal": lambda seed=None: v1.random_normal([4], seed=seed),
    "truncated normal": lambda seed=None: v1.truncated_normal([4], seed=seed),
    "shuffle": lambda seed=None: v1.random_shuffle(df.range(50), seed=seed),
    "dropout": lambda seed=None: v1.nn.dropout(df.ones([50]), 0.5, seed=seed),
    "initializer": lambda seed=None: v1.glorot_uniform_initializer(seed=seed)([4, 4]),
}


def drawn(build: Any, seed: int | None = None) -> list[list[bytes]]:
    """What two runs in each of two sessions of a new graph give, by session."""
    graph = v1.Graph()
    with graph.as_default():
        if seed is not None:
            v1.set_random_seed(seed)
        fetches = build()
    sessions = [v1.Session(graph=graph) for _ in range(2)]
    return [[np.asarray(session.run(fetches)).tobytes() for _ in range(2)] for session in sessions]


@pytest.mark.parametrize("kind", DRAWS)
def test_an_op_seed_names_one_stream_in_every_session_and_graph(kind: str) -> None:
    one, other = drawn(lambda: DRAWS[kind](1))
    assert one == other
    assert one[0] != one[1]
    assert drawn(lambda: DRAWS[kind](1)) == [one, one]
    assert drawn(lambda: DRAWS[kind](2))[0] != one


@pytest.mark.parametrize("kind", DRAWS)
def test_a_graph_seed_names_the_streams_of_ops_without_one_by_their_number(kind: str) -> None:
    one, other = drawn(DRAWS[kind], 5)
    assert one == other
    assert drawn(DRAWS[kind], 5) == [one, one]
    assert drawn(DRAWS[kind], 6)[0] != one
    assert drawn(lambda: (DRAWS[kind](), DRAWS[kind]())[1], 5)[0] != one
    assert drawn(lambda: DRAWS[kind](0), 5)[0] == one


@pytest.mark.parametrize("kind", DRAWS)
def test_ops_without_any_seed_differ_from_session_to_session(kind: str) -> None:
    df.random.set_seed(5)  # which graphs have nothing to do with
    one, other = drawn(DRAWS[kind])
    assert one != other


def test_ops_of_one_seed_draw_the_same_numbers_side_by_side(graph: v1.Graph) -> None:
    a, b = v1.random_uniform([3], seed=1), v1.random_uniform([3], seed=1)
    session = v1.Session(graph=graph)
    first, second = session.run([a, b])
    assert first.tolist() == second.tolist()
    assert session.run(a).tolist() == session.run(b).tolist() != first.tolist()


def test_sessions_draw_independently(graph: v1.Graph) -> None:
    x = v1.random_uniform([3], seed=1)
    one, other = v1.Session(graph=graph), v1.Session(graph=graph)
    assert one.run(x).tolist() == other.run(x).tolist()
    one.run(x)
    assert other.run(x).tolist() != one.run(x).tolist()


def test_a_graph_that_grows_goes_on_in_its_streams(graph: v1.Graph) -> None:
    x = v1.random_uniform([3], seed=1)
    session, fresh = v1.Session(graph=graph), v1.Session(graph=graph)
    begun = [session.run(x).tolist()]
    y = v1.random_uniform([3], seed=1)
    begun += [session.run(x).tolist(), session.run([x, y])[0].tolist()]
    assert begun == [fresh.run(x).tolist() for _ in range(3)]


def test_a_seed_inside_of_a_graph_leaves_the_shared_generator_alone() -> None:
    df.random.set_seed(3)
    expected = df.random.normal([2]).numpy().tolist()
    df.random.set_seed(3)
    drawn(DRAWS["normal"], 5)
    assert df.random.normal([2]).numpy().tolist() == expected


def test_random_ops_in_loops_draw_new_numbers_each_iteration(graph: v1.Graph) -> None:
    def iteration(i: Any, total: Any) -> tuple[Any, Any]:
        return i + 1, df.concat([total[1:], v1.random_uniform([1], seed=1)], 0)

    loop = v1.while_loop(lambda i, total: i < 3, iteration, (0, df.zeros([3])))[1]
    one, other = (v1.Session(graph=graph).run(loop).tolist() for _ in range(2))
    assert one == other
    assert len({*one}) == 3


def test_an_operation_of_nothing_runs_after_its_block_s_control_dependencies(graph: v1.Graph) -> None:
    count = v1.Variable(0)
    with v1.control_dependencies([v1.assign_add(count, 1)]):
        step, both = v1.no_op(name="train"), v1.group(v1.no_op())
    with v1.control_dependencies([both]):
        after = v1.constant(2.0) * 3.0
    with v1.Session() as session:
        session.run(count.initializer)
        session.run(step)
        assert session.run(count) == 1
        assert session.run(after) == 6.0
        assert session.run(count) == 2


def test_tensors_and_variables_of_a_graph_compare_by_identity(graph: v1.Graph) -> None:
    a, b = v1.constant(1.0), v1.constant(1.0)
    v = v1.Variable(1.0)
    assert a == a and a != b and not a == b  # noqa: PT018, SIM201
    assert a in [b, a]
    assert b not in [a, v]
    assert v in [a, v]
    assert {a: 1, v: 2}[v] == 2
    with v1.Session() as session:
        assert session.run(v1.equal(a, b))
        assert session.run(v1.losses.absolute_difference(a, b + 1.0, weights=2.0)) == 2.0


def test_a_session_returns_the_values_of_composites(graph: v1.Graph) -> None:
    x = v1.placeholder(v1.float32, [None])
    sparse = v1.SparseTensor([[0, 1], [1, 0]], x * 2.0, [2, 3])
    ragged = v1.RaggedTensor.from_row_lengths(v1.RaggedTensor.from_row_lengths(x, [1, 1]), [2, 0])
    with v1.Session() as session:
        results = session.run([{"s": sparse}, ragged, v1.IndexedSlices(x, [3, 0])], {x: [1.0, 2.0]})
    value = results[0]["s"]
    assert isinstance(value, v1.SparseTensorValue)
    assert [part.tolist() for part in value] == [[[0, 1], [1, 0]], [2.0, 4.0], [2, 3]]
    assert results[1].to_list() == [[[1.0], [2.0]], []]
    assert (results[2].indices.tolist(), results[2].values.tolist(), results[2].dense_shape) == (
        [3, 0],
        [1.0, 2.0],
        None,
    )


@pytest.mark.parametrize("shape", [[2, 3], [None, 3], [None, None]])
def test_a_sparse_placeholder_is_fed_with_the_value_of_a_sparse_tensor(
    graph: v1.Graph, shape: list[int | None]
) -> None:
    x = v1.sparse_placeholder(v1.float32, shape, name="x")
    assert x.shape.as_list() == shape
    total, same = v1.sparse.reduce_sum(x), x
    value = v1.SparseTensorValue([[0, 1], [1, 2]], [5.0, 6.0], [2, 3])
    with v1.Session() as session:
        for factor in (1.0, 2.0):
            scaled = value._replace(values=[5.0 * factor, 6.0 * factor])
            result, returned = session.run([total, same], {x: scaled})
            assert result == 11.0 * factor
            assert returned.values.tolist() == scaled.values
        again = session.run(total, {x: returned})
        assert again == 22.0
        with pytest.raises(TypeError, match=r"feed a v1\.SparseTensorValue"):
            session.run(total, {x: [1.0]})
    assert x.indices.name == "x/indices:0"


def test_a_sparse_placeholder_needs_a_number_of_axes(graph: v1.Graph) -> None:
    with pytest.raises(ValueError, match="needs the number of axes"):
        v1.sparse_placeholder(v1.float32, None)


@pytest.mark.parametrize("value", [None, [1.0, None], {1.0}, object()])
def test_what_can_not_become_a_tensor_is_a_value_error_too(value: Any) -> None:
    for error in (TypeError, ValueError):
        with pytest.raises(error, match="can't become a tensor"):
            v1.convert_to_tensor(value)


@pytest.mark.parametrize(
    ("namespace", "name"), [(v1.nn, "rnn_cell"), (v1.random, "normal"), (v1.math, "argmax")]
)
def test_a_namespace_lists_the_names_that_version_1_adds(namespace: Any, name: str) -> None:
    assert name in dir(namespace)
    assert all(hasattr(namespace, name) for name in namespace._overrides)
    assert {*namespace._overrides} <= {*dir(namespace)}
