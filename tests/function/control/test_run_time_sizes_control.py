"""Branches and loops in which sizes depend on data: machine code, and what eager or NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.tree import leaves
from dualflow.errors import InvalidArgumentError
from dualflow.function.calls.size_decisions import CallSizes
from dualflow.function.calls.symbolic_graph import with_symbolic_sizes
from dualflow.graph.compiled import PartKind
from dualflow.graph.control_spec import loop_of
from dualflow.graph.options import CompileOptions
from dualflow.ops.op_kinds import Loop
from dualflow.schedule.loop_sizes import changing_positions

BACKEND = df.config.get_backend()
WHOLE = [PartKind.NATIVE] if BACKEND == "llvm" else [PartKind.NATIVE, PartKind.NUMPY]
"""Only the default backend compiles data-dependent sizes."""

X = np.arange(12, dtype=np.float32) - 5
ITERATIONS = (0, 1, 2, 5, 12)


def assert_same(result, expected):
    for a, b in zip(leaves(result), leaves(expected), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def in_a_branch(x, n):
    return df.reduce_sum(x[x > 2.0]) if n > 3 else df.reduce_sum(x[:n])


def sized_by_a_branch(x, n):
    y = x[x > 0.0] if n > 3 else x[:n] * 2.0
    return y, df.reduce_sum(y)


def sized_by_a_branch_or_known(x, n):
    y = df.cond(n > 3, lambda: x[:n], lambda: x[:3])
    return df.exp(-df.abs(y))


def in_a_loop(x, n):
    total = df.constant(0.0)
    for i in df.range(n):
        total += df.reduce_sum(x[:i])
    return total


def in_a_branch_of_a_loop(x, n):
    total = df.constant(0.0)
    for i in df.range(n):
        y = x[:i] if i % 2 == 0 else x[i:] * 2.0
        total += df.reduce_sum(y)
    return total


def rows_of_a_part(x, n):
    total = df.constant(0.0)
    for row in df.reshape(x, [6, 2])[: n // 2]:
        total += row[0] * row[1]
    return total


def written(x, n):
    array = df.TensorArray(df.float32, size=n, element_shape=[])
    for i in df.range(n):
        array = array.write(i, x[i] ** 2)
    return array.stack()


def appended(x, n):
    array = df.TensorArray(df.float32, size=0, dynamic_size=True, element_shape=[2])
    for i in df.range(n):
        array = array.write(i, x[:2] * df.cast(i, df.float32))
    return array.stack()


def written_for_each_row(x, n):
    array = df.TensorArray(df.float32, size=df.shape(x)[0], element_shape=[])
    for i in df.range(df.shape(x)[0]):
        array = array.write(i, x[i] * df.cast(n, df.float32))
    return array.stack()


CONVERTED = [
    in_a_branch,
    sized_by_a_branch,
    sized_by_a_branch_or_known,
    in_a_loop,
    in_a_branch_of_a_loop,
    rows_of_a_part,
    written,
    written_for_each_row,
    appended,
]


def parts_of(program):
    """The parts of a program; a device compiles the one whose sizes follow from those of its arguments."""
    return [PartKind.NATIVE] if BACKEND == "opencl" and program is written_for_each_row else WHOLE


@pytest.mark.parametrize("program", CONVERTED, ids=lambda f: f.__name__)
def test_branches_and_loops_are_one_trace_of_machine_code(program):
    f, reference = df.function(program), df.function(program, backend="numpy")
    for n in ITERATIONS:
        inputs = df.constant(X), df.constant(n)
        assert_same(f(*inputs), reference(*inputs))
    assert f.experimental_get_tracing_count() == 1
    assert [part.kind for part in f.concrete_functions[0].parts] == parts_of(program)


def slope_of(program):
    def slope(x, n):
        with df.GradientTape() as tape:
            tape.watch(x)
            results = [df.reduce_sum(df.sin(y)) for y in leaves(program(x, n)) if y.dtype.is_floating]
            total = df.add_n([df.constant(0.0), *results])
        return tape.gradient(total, x, unconnected_gradients="zero")

    return slope


@pytest.mark.parametrize("program", CONVERTED[:-1], ids=lambda f: f.__name__)
def test_their_gradients_are_machine_code(program):
    slope = slope_of(program)
    f, reference = df.function(slope), df.function(slope, backend="numpy")
    for n in ITERATIONS:
        inputs = df.constant(X), df.constant(n)
        assert_same(f(*inputs), reference(*inputs))
    assert [part.kind for part in f.concrete_functions[0].parts] == parts_of(program)


def scaled(v, n):
    for _ in df.range(n):
        v = df.tanh(v) * 0.6
    return v


def grows_a_stack_of_parts(x, n):
    """The gradient needs a row from each iteration, whose size depends on the data."""
    with df.GradientTape() as tape:
        tape.watch(x)
        v = scaled(x[x > 0.0], n)
    return tape.gradient(v, x)


def grows_a_stack_of_longer_rows(x, n):
    """The stack of the inner loop has longer rows each time that loop runs."""
    x, total = df.tile(x, [100]), df.zeros([1200])
    for i in df.range(n):
        with df.GradientTape() as tape:
            tape.watch(x)
            v = scaled(x[: i * 100], n)
        total += tape.gradient(v, x)
    return total


@pytest.mark.parametrize(
    "program", [grows_a_stack_of_parts, grows_a_stack_of_longer_rows], ids=lambda f: f.__name__
)
def test_stacks_whose_rows_have_a_size_that_depend_on_data(program):
    f, reference = df.function(program), df.function(program, backend="numpy")
    for n in (*ITERATIONS, 70):
        for values in (X, -X, np.abs(X)):
            inputs = df.constant(values), df.constant(min(n, 12) if "longer" in program.__name__ else n)
            assert_same(f(*inputs), reference(*inputs))
    assert [part.kind for part in f.concrete_functions[0].parts] == WHOLE


# What loops carry


def longer(x, n):
    return df.while_loop(
        lambda i, y: i < n,
        lambda i, y: (i + 1, df.concat([y, [df.cast(i, y.dtype)]], 0)),
        (0, x[:0]),
        shape_invariants=(df.TensorSpec([]), df.TensorSpec([None])),
    )[1]


def more_rows(x, n):
    rows = df.reshape(x, [4, 3])
    return df.while_loop(
        lambda i, y: i < n,
        lambda i, y: (i + 1, df.concat([y, rows[:1] * df.cast(i, df.float32)], 0)),
        (df.constant(0), rows),
        shape_invariants=([], [None, 3]),
    )[1]


def more_columns(x, n):
    rows = df.reshape(x, [4, 3])
    return df.while_loop(
        lambda i, y: i < n,
        lambda i, y: (i + 1, df.concat([y, rows[:, :1]], 1)),
        (df.constant(0), rows),
        shape_invariants=([], [4, None]),
    )[1]


def shorter(x, n):
    return df.while_loop(
        lambda i, y: (i < n) & (df.size(y) > 1),
        lambda i, y: (i + 1, y[y > df.reduce_mean(y)]),
        (df.constant(0), x),
        shape_invariants=([], [None]),
    )


def exchanged(x, n):
    return df.while_loop(
        lambda i, a, b: i < n,
        lambda i, a, b: (i + 1, b, df.concat([a, b], 0)),
        (df.constant(0), x[:1], x[1:2]),
        shape_invariants=([], [None], [None]),
    )


def nested(x, n):
    def outer(i, y):
        y = df.while_loop(
            lambda j, z: j < i,
            lambda j, z: (j + 1, df.concat([z, x[:1] + df.cast(j, df.float32)], 0)),
            (df.constant(0), y),
            shape_invariants=([], [None]),
        )[1]
        return i + 1, y

    return df.while_loop(lambda i, y: i < n, outer, (df.constant(0), x[:0]), shape_invariants=([], [None]))[1]


def only_its_size(x, n):
    y = df.while_loop(
        lambda i, y: i < n,
        lambda i, y: (i + 1, df.concat([y, x[:2]], 0)),
        (df.constant(0), x[:1]),
        shape_invariants=([], [None]),
    )[1]
    return df.shape(y)[0]


def of_another_size_at_once(x, n):
    rows = df.reshape(x, [4, 3])
    return df.while_loop(
        lambda i, y: i < n,
        lambda i, y: (i + 1, df.concat([rows, rows[:1]], 0)),
        (df.constant(0), rows),
        shape_invariants=([], [None, None]),
    )[1]


def nothing_of_a_part(x, n):
    """For an empty part the gradient has sizes of 0, whose equality is known at run time only."""
    part = x[:n]
    return df.while_loop(
        lambda i, y: i < n - 1,
        lambda i, y: (i + 1, df.tile(part, [0])),
        (df.constant(0), part),
        shape_invariants=([], [None]),
    )[1]


def nothing_of_all(x, n):
    return df.while_loop(
        lambda i, y: i < n,
        lambda i, y: (i + 1, df.tile(x, [0])),
        (df.constant(0), x),
        shape_invariants=([], [None]),
    )[1]


GROWING = [
    nothing_of_a_part,
    nothing_of_all,
    of_another_size_at_once,
    longer,
    more_rows,
    more_columns,
    shorter,
    exchanged,
    nested,
    only_its_size,
]


@pytest.mark.parametrize("program", GROWING, ids=lambda f: f.__name__)
def test_carried_tensors_change_their_size(program):
    f = df.function(program)
    for n in (0, 1, 2, 7):
        inputs = df.constant(X), df.constant(n)
        assert_same(f(*inputs), program(*inputs))
    assert f.experimental_get_tracing_count() == 1
    assert [part.kind for part in f.concrete_functions[0].parts] == WHOLE


def test_a_padded_slice_keeps_its_size_from_two_elements_on():
    """That is a guard: below two elements, the size is one that iterations change."""

    def padded(x):
        for _ in df.range(2):
            x = df.pad(x[1:-1] + x[2:] - x[:-2], [[1, 1], [0, 0]])
        return x

    f = df.function(padded)
    for size in (5, 7, 2, 1, 0, 3, 1, 300):
        x = df.constant(np.arange(3.0 * size).reshape(size, 3), df.float32)
        assert_same([f(x)], [padded(x)])
    graph = f.get_concrete_function(df.TensorSpec([None, 3])).graph
    for size, changes in ((1, True), (2, False)):
        call_sizes = CallSizes({(0, 0): size})
        sized = with_symbolic_sizes(graph, CompileOptions(BACKEND), call_sizes=call_sizes)
        (loop,) = [loop_of(node) for node in sized.nodes if isinstance(node.op.kind, Loop)]
        assert bool(changing_positions(loop)) is changes
        assert [call_sizes.decide_alike([df.zeros([n, 3])]) for n in (1, 2, 9)] == [
            changes,
            not changes,
            not changes,
        ]


@pytest.mark.parametrize("program", GROWING, ids=lambda f: f.__name__)
def test_and_do_in_a_trace_of_dynamic_sizes(program):
    f = df.function(program, input_signature=[df.TensorSpec([None]), df.TensorSpec([], df.int32)])
    for x in (X, -X):
        for n in (0, 2, 5):
            arguments = df.constant(x), df.constant(n)
            assert_same(f(*arguments), program(*arguments))


@pytest.mark.parametrize("program", [*CONVERTED, *GROWING], ids=lambda f: f.__name__)
def test_their_gradients_in_a_trace_of_dynamic_sizes(program):
    slope = slope_of(program)
    specs = [df.TensorSpec([None]), df.TensorSpec([], df.int32)]
    f = df.function(slope, input_signature=specs)
    whole = {nothing_of_a_part, nothing_of_all}
    for x in (X, -X, X[:0]) if program in whole else (X, -X):
        for n in (0, 1, 2, 5, 12):
            arguments = df.constant(x), df.constant(n)
            assert_same(f(*arguments), slope(*arguments))


@pytest.mark.parametrize(
    ("invariants", "message"),
    [
        (([], [None], []), "structure of the loop variables"),
        (([], [3, None]), "does not match its invariant"),
        (([], [5]), "does not match its invariant"),
        (None, "after one iteration"),
        (([], None), "after one iteration"),
    ],
)
def test_invariants_that_do_not_fit_are_refused(mode, invariants, message):
    def program(x):
        return df.while_loop(
            lambda i, y: i < 2,
            lambda i, y: (i + 1, df.concat([y, y], 0)),
            (df.constant(0), x),
            shape_invariants=invariants,
        )

    with pytest.raises(InvalidArgumentError, match=message):
        mode(program)(df.constant(X))


def concatenated_twice(x, invariant, axis=0):
    return df.while_loop(
        lambda i, y: i < 2,
        lambda i, y: (i + 1, df.concat([y, y], axis)),
        (df.constant(0), x),
        shape_invariants=([], invariant),
    )[1]


@pytest.mark.parametrize(
    ("invariant", "axis"),
    [(df.RaggedTensorSpec([2, None]), 1), (df.TensorShape([None, None]), 0), (df.TensorShape(None), 0)],
)
def test_a_ragged_tensor_has_a_shape_invariant(mode, invariant, axis):
    rows = [[1.0, 2.0], [3.0]]
    result = mode(lambda x: concatenated_twice(x, invariant, axis))(df.ragged.constant(rows))
    assert result.to_list() == ([row * 4 for row in rows] if axis else rows * 4)


def test_an_invariant_of_another_rank_than_its_ragged_tensor_is_refused(mode):
    with pytest.raises(InvalidArgumentError, match=r"for which \(None,\) is no shape invariant"):
        mode(lambda x: concatenated_twice(x, [None]))(df.ragged.constant([[1.0], []]))


@pytest.mark.parametrize("invariant", [df.TensorShape([2]), df.TensorShape([3, None])])
def test_the_elements_of_a_sparse_tensor_grow_in_a_loop_with_an_invariant(mode, invariant):
    def program(x):
        return df.while_loop(
            lambda i, y: i < 2,
            lambda i, y: (i + 1, df.sparse.add(y, df.SparseTensor([[1, 1]], [2.0], [3, 3]))),
            (df.constant(0), x),
            shape_invariants=([], invariant),
        )[1]

    result = mode(program)(df.SparseTensor([[0, 0]], [1.0], [3, 3]))
    assert df.sparse.to_dense(result).numpy().tolist() == [[1.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("invariant", [df.TensorShape(None), df.TensorShape([])])
def test_the_invariant_of_a_tensor_array_is_ignored(mode, invariant):
    def program(n):
        return df.while_loop(
            lambda i, rows: i < n,
            lambda i, rows: (i + 1, rows.write(i, i * i)),
            (df.constant(0), df.TensorArray(df.int32, 0, dynamic_size=True, element_shape=[])),
            shape_invariants=([], invariant),
        )[1].stack()

    assert mode(program)(df.constant(4)).numpy().tolist() == [0, 1, 4, 9]


def test_a_failure_in_an_iteration_leaves_variables_as_eager_would():
    v = df.Variable(0.0)

    @df.function
    def f(x, n):
        for i in df.range(n):
            v.assign_add(df.gather(x[:i], 0))
        return v.value()

    with pytest.raises(df.errors.OutOfRangeError):
        f(df.constant(X), df.constant(2))
    assert v.numpy() == 0.0


def test_a_branch_takes_a_tensor_with_an_empty_axis_before_a_dynamic_one():
    def program(x, y, n):
        with df.GradientTape() as tape:
            tape.watch([x, y])
            rows = df.boolean_mask(y, y[:, 0] > 0.0)
            rows = df.cond(n > 0, lambda: rows, lambda: rows * df.cast(df.size(df.exp(x) * 2.0), df.float32))
            total = df.reduce_sum(rows) + df.cast(
                df.reduce_sum(df.cond(n > 0, lambda: x, lambda: x * 2.0)), df.float32
            )
        return rows, *tape.gradient(total, [x, y])

    signature = [
        df.TensorSpec([3, 0, None], df.float64),
        df.TensorSpec([3, None]),
        df.TensorSpec([], df.int32),
    ]
    compiled = df.function(program, input_signature=signature)
    for size, n in ((3, 1), (1, 0), (0, 1), (5, 0)):
        x, y = (
            df.ones([3, 0, size], df.float64),
            df.constant(np.arange(51, dtype=np.float32).reshape(3, 17) - 20),
        )
        for result, expected in zip(
            compiled(x, y, df.constant(n)), program(x, y, df.constant(n)), strict=True
        ):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.llvm
@pytest.mark.parametrize("name", ["unique", "sorted unique"])
def test_the_gradient_of_a_branch_whose_size_a_host_call_computes(name):
    """Only the size of the branch's result is read: the conditional that binds it has no results."""

    def slopes(x):
        def distinct():
            column = x[:, 0] if name == "unique" else df.sort(x[:, 0])
            return df.unique(column)[0]

        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.cond(df.shape(x)[0] > 2, distinct, lambda: x[:, 0])
        return tape.gradient(y, x, unconnected_gradients="zero")

    compiled = df.function(slopes, input_signature=[df.TensorSpec([None, 2])])
    for rows in (3, 0, 1, 2, 31, 32, 33):
        x = df.constant(np.arange(2 * rows).reshape(rows, 2) // 3, df.float32)
        np.testing.assert_array_equal(compiled(x).numpy(), slopes(x).numpy())
    assert compiled.experimental_get_tracing_count() == 1
