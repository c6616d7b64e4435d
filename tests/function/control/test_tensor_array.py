"""TensorArray: the same tensors now, traced, and carried by loops."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError, OutOfRangeError
from dualflow.core.tree import leaves


def halves(array):
    """An array with two of its places written."""
    return array.write(0, [1.0, 2.0]).write(2, [3.0, 4.0])


def test_stack_gives_what_was_written_and_zeros(mode):
    result = mode(lambda: halves(df.TensorArray(df.float32, 3)).stack())()
    assert result.numpy().tolist() == [[1, 2], [0, 0], [3, 4]]


def test_read_gives_what_was_written(mode):
    result = mode(lambda i: halves(df.TensorArray(df.float32, 3)).read(i))(df.constant(2))
    assert result.numpy().tolist() == [3, 4]


def test_gather_returns_some_elements(mode):
    result = mode(lambda: halves(df.TensorArray(df.float32, 3)).gather([2, 1]))()
    assert result.numpy().tolist() == [[3, 4], [0, 0]]


def test_unstack_and_concat_are_the_rows(mode):
    result = mode(lambda x: df.TensorArray(df.float32, 2).unstack(x).concat())(
        df.constant([[1.0, 2], [3, 4]])
    )
    assert result.numpy().tolist() == [1, 2, 3, 4]


def test_split_writes_pieces_to_elements(mode):
    result = mode(lambda x: df.TensorArray(df.float32, 2).split(x, [2, 2]).read(1))(df.range(4.0))
    assert result.numpy().tolist() == [2, 3]


def test_scatter_writes_to_elements(mode):
    result = mode(lambda x: df.TensorArray(df.float32, 3).scatter([2, 0], x).stack())(df.constant([1.0, 2.0]))
    assert result.numpy().tolist() == [2, 0, 1]


def test_size_is_a_tensor(mode):
    result = mode(lambda: df.TensorArray(df.float32, 3).size())()
    assert (int(result), result.dtype) == (3, df.int32)


def test_a_dynamic_array_grows(mode):
    result = mode(lambda: df.TensorArray(df.int32, 0, dynamic_size=True).write(2, 7).stack())()
    assert result.numpy().tolist() == [0, 0, 7]


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_outside_is_out_of_range(mode, index):
    array = df.TensorArray(df.float32, 3, element_shape=[])
    with pytest.raises(OutOfRangeError):
        mode(lambda: array.write(index, 1.0).stack())()
    with pytest.raises(OutOfRangeError):
        mode(lambda: array.read(index))()


def test_an_index_outside_known_at_run_time_is_out_of_range():
    array = df.TensorArray(df.float32, 3, element_shape=[])
    with pytest.raises(OutOfRangeError):
        df.function(lambda i: array.read(i))(df.constant(3))
    with pytest.raises(OutOfRangeError):
        df.function(lambda i: array.write(i, 1.0).stack())(df.constant(3))


def test_consumed_elements_are_gone():
    array = df.TensorArray(df.float32, 1).write(0, 1.0)
    array.read(0)
    with pytest.raises(InvalidArgumentError, match="Could not read index 0 twice"):
        array.read(0)


def test_elements_that_were_read_stay_without_clearing():
    array = df.TensorArray(df.float32, 1, clear_after_read=False).write(0, 1.0)
    assert float(array.read(0)) == float(array.read(0)) == 1.0


def test_a_rewritten_element_can_be_read_again():
    array = df.TensorArray(df.float32, 1).write(0, 1.0)
    array.read(0)
    assert float(array.write(0, 2.0).read(0)) == 2.0


def test_another_dtype_is_an_error(mode):
    with pytest.raises(InvalidArgumentError, match="dtype is float32 but Op is trying to write dtype int32"):
        mode(lambda: df.TensorArray(df.float32, 1).write(0, df.constant(1)).stack())()


def test_another_shape_is_an_error(mode):
    with pytest.raises(InvalidArgumentError, match="Incompatible shape"):
        mode(lambda: df.TensorArray(df.float32, 2).write(0, 1.0).write(1, [1.0]).stack())()


def test_more_rows_than_elements_are_an_error(mode):
    with pytest.raises(InvalidArgumentError, match="Cannot unstack 3 tensors"):
        mode(lambda: df.TensorArray(df.float32, 2).unstack(df.ones([3])).stack())()


def test_an_array_of_unknown_shape_has_no_zeros(mode):
    with pytest.raises(InvalidArgumentError, match="element_shape"):
        mode(lambda: df.TensorArray(df.float32, 2).stack())()


def test_gradients_flow_through_writes_and_reads(mode):
    def f(x):
        array = df.TensorArray(df.float32, 2).write(0, x * 2).write(1, x * x)
        return array.read(0) * array.read(1)

    x = df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = mode(f)(x)
    assert float(tape.gradient(y, x)) == 54.0


def powers(x, n, **options):
    """1, x, x squared, ... by a loop over a tensor."""

    def iteration(i, p, array):
        return i + 1, p * x, array.write(i, p)

    array = df.TensorArray(df.float32, 4, **options)
    return df.while_loop(lambda i, p, array: i < n, iteration, (df.constant(0), df.ones([]), array))[
        2
    ].stack()


def test_a_loop_over_a_tensor_carries_the_array(mode):
    result = mode(lambda x, n: powers(x, n, element_shape=[]))(df.constant(2.0), df.constant(3))
    assert result.numpy().tolist() == [1, 2, 4, 0]


def test_gradients_flow_through_an_array_that_a_loop_carries(mode):
    x = df.constant(2.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = mode(lambda x: df.reduce_sum(powers(x, df.constant(4), element_shape=[])))(x)
    assert float(tape.gradient(y, x)) == 1 + 4 + 12


def test_a_traced_loop_finds_the_shape():
    x, n = df.constant(2.0), df.constant(3)
    assert df.function(powers)(x, n).numpy().tolist() == powers(x, n).numpy().tolist()


def test_branches_carry_the_array():
    @df.function
    def f(p):
        array = df.TensorArray(df.float32, 2, element_shape=[])
        return df.cond(p, lambda: array.write(0, 1.0), lambda: array.write(1, 2.0)).stack()

    assert f(df.constant(True)).numpy().tolist() == [1, 0]
    assert f(df.constant(False)).numpy().tolist() == [0, 2]


def test_pythons_own_loops_and_branches_carry_the_array(mode):
    def f(x, n):
        array = df.TensorArray(df.float32, 3, element_shape=[])
        for i in df.range(n):
            array = array.write(i, x * df.cast(i, df.float32))
        if x > 1.0:
            array = array.write(0, -x)
        return array.stack()

    result = mode(f)(df.constant(2.0), df.constant(3))
    assert result.numpy().tolist() == [-2, 2, 4]


def test_a_branch_may_write_to_an_array_whose_shape_an_earlier_write_determined():
    @df.function
    def f(x):
        array = df.TensorArray(df.float32, 2).write(0, x)
        return df.cond(x > 1.0, lambda: array.write(1, x), lambda: array.write(0, -x)).stack()

    assert f(df.constant(2.0)).numpy().tolist() == [2, 2]
    assert f(df.constant(0.5)).numpy().tolist() == [-0.5, 0]


def test_an_eager_write_changes_the_array():
    array = df.TensorArray(df.float32, 1)
    assert array.write(0, 1.0) is array


# Sizes known only at run time


def grown(n):
    array = df.TensorArray(df.float32, size=0, dynamic_size=True)
    for i in df.range(n):
        array = array.write(i, df.ones([2]) * df.cast(i, df.float32))
    return array.stack(), array.size()


def selected(n):
    array = df.TensorArray(df.int32, size=0, dynamic_size=True)
    for i in df.range(n):
        if i % 2 == 1:
            array = array.write(array.size(), i)
    return array.stack()


def in_two_loops(n):
    array = df.TensorArray(df.int32, size=0, dynamic_size=True)
    for i in df.range(n):
        for j in df.range(i + 1):
            array = array.write(array.size(), 10 * i + j)
    return array.stack()


def by_while(n):
    array, i = df.TensorArray(df.int32, size=0, dynamic_size=True), df.constant(0)
    while i < n:
        array = array.write(i, i * i)
        i += 1
    return array.gather([0, n - 1])


def by_while_loop(n):
    def body(i, array):
        return i + 1, array.write(i, [i, i])

    start = df.constant(0), df.TensorArray(df.int32, size=0, dynamic_size=True)
    _, array = df.while_loop(lambda i, array: i < n, body, start)
    return array.concat()


def of_a_known_size_by_while_loop(n):
    start = df.constant(0), df.TensorArray(df.int32, size=5)
    _, array = df.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, i)), start)
    return array.stack()


def of_a_tensors_size(n):
    array = df.TensorArray(df.int32, size=n)
    for i in df.range(n):
        array = array.write(i, i + 1)
    return array.stack()


def reading_what_was_written(n):
    array = df.TensorArray(df.int32, size=0, dynamic_size=True, clear_after_read=False)
    array = array.write(0, 1).write(1, 1)
    for i in df.range(2, n):
        array = array.write(i, array.read(i - 1) + array.read(i - 2))
    return array.stack()


def in_one_branch(n):
    array = df.TensorArray(df.int32, size=1)
    if n > 2:
        array = array.write(0, n)
    return array.stack()


def test_an_array_written_in_one_branch_has_its_shape_in_both():
    f = df.function(in_one_branch)
    assert f(df.constant(3)).numpy().tolist() == [3]
    assert f(df.constant(1)).numpy().tolist() == [0]


def reduced(n):
    return df.reduce_sum(grown(n)[0])


@pytest.mark.parametrize(
    "program",
    [
        grown,
        selected,
        in_two_loops,
        by_while,
        by_while_loop,
        of_a_known_size_by_while_loop,
        of_a_tensors_size,
        reading_what_was_written,
        reduced,
    ],
)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_arrays_of_dynamic_size_equal_eager_arrays(program, n):
    n = df.constant(n)
    for a, b in zip(leaves(df.function(program)(n)), leaves(program(n)), strict=True):
        assert a.numpy().tolist() == b.numpy().tolist()


def products(x, n):
    array, y = df.TensorArray(df.float32, size=0, dynamic_size=True), x
    for i in df.range(n):
        y = y * x
        array = array.write(i, y)
    return df.reduce_sum(array.stack() ** 2)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_gradients_flow_through_arrays_that_grow(n):
    def slope(x, n):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = products(x, n)
        return tape.gradient(y, x, unconnected_gradients="zero")

    x, n = df.constant(1.5), df.constant(n)
    expected = slope(x, n).numpy()
    assert df.function(slope)(x, n).numpy() == pytest.approx(expected)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.function(products)(x, n)
    assert tape.gradient(y, x).numpy() == pytest.approx(expected)


@pytest.mark.llvm  # the one backend that compiles data-dependent sizes
def test_dynamic_sizes_run_natively():
    f = df.function(grown, strict=True)
    f(df.constant(3))
    assert "numpy" not in f.status()


def test_rows_of_different_shapes_are_joined(mode):
    def joined():
        array = df.TensorArray(df.float32, size=3, infer_shape=False)
        array = array.write(0, [1.0, 2.0]).write(1, [3.0]).write(2, [])
        return array.concat(), array.read(1)

    first, second = mode(joined)()
    assert (first.numpy().tolist(), second.numpy().tolist()) == ([1.0, 2.0, 3.0], [3.0])


def test_a_tensor_of_dynamic_size_has_the_size_of_the_others():
    @df.function
    def stacked(x, n):
        array = df.TensorArray(df.float32, size=0, dynamic_size=True, element_shape=[2])
        for i in df.range(n):
            array = array.write(i, x[x > 0.0] * df.cast(i, df.float32))
        return array.stack()

    assert stacked(df.constant([1.0, -1.0, 2.0]), df.constant(2)).numpy().tolist() == [[0, 0], [1, 2]]
    with pytest.raises(df.errors.InvalidArgumentError, match=r"and \(2,\) are incompatible"):
        stacked(df.constant([1.0, 1.0, 2.0]), df.constant(2))


def states(x):
    steps, batch = df.shape(x)[1], df.shape(x)[0]
    array, state = df.TensorArray(df.float32, steps), df.zeros([batch, 3])
    for step in df.range(steps):
        state = df.tanh(state + x[:, step])
        array = array.write(step, state)
    return df.transpose(array.stack(), [1, 0, 2])


def states_by_while_loop(x):
    def iteration(step, array, state):
        state = df.tanh(state + x[:, step])
        return step + 1, array.write(step, state), state

    array = df.TensorArray(df.float32, 0, dynamic_size=True, element_shape=[None, 3])
    before = df.constant(0), array, df.zeros([df.shape(x)[0], 3])
    _, array, _ = df.while_loop(lambda step, array, state: step < df.shape(x)[1], iteration, before)
    return df.transpose(array.stack(), [1, 0, 2])


def sum_of_unstacked(x):
    array, total = df.TensorArray(df.float32, df.shape(x)[0]).unstack(x), df.zeros(df.shape(x)[1:])
    for step in df.range(array.size()):
        total += array.read(step) * df.cast(step, df.float32)
    return total


def pairs_in_a_map(x):
    def pair(row):
        def iteration(i, array):
            return i + 1, array.write(i, row * df.cast(i + 1, df.float32))

        return df.while_loop(lambda i, _: i < 2, iteration, (0, df.TensorArray(df.float32, 2)))[1].concat()

    return df.map_fn(pair, x)


def states_until_a_large_one(x):
    array, state = df.TensorArray(df.float32, df.shape(x)[1]), df.zeros([df.shape(x)[0], 3])
    for step in df.range(df.shape(x)[1]):
        if df.reduce_any(state > 0.9):
            break
        state = df.tanh(state + x[:, step])
        if step % 2 == 0:
            array = array.write(step, state)
    return df.transpose(array.stack(), [1, 0, 2])


PROGRAMS = [
    states,
    states_by_while_loop,
    states_until_a_large_one,
    sum_of_unstacked,
    pairs_in_a_map,
]


@pytest.mark.llvm  # the one backend that compiles data-dependent sizes
@pytest.mark.parametrize("program", PROGRAMS)
def test_elements_of_dynamic_size_have_one_program(program):
    """Batches without elements may have one of their own, whose cotangents have no rows to add."""

    def value_and_slope(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return y, tape.gradient(y, x, unconnected_gradients="zero")

    compiled = df.function(value_and_slope, input_signature=[df.TensorSpec([None, None, 3])])
    for batch, steps in ((2, 4), (1, 2), (5, 1), (0, 3)):
        x = df.random.stateless_normal([batch, steps, 3], [batch, steps])
        for result, expected in zip(compiled(x), value_and_slope(x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
        (concrete,) = compiled.concrete_functions
        assert len(concrete._specialisations) == 1 or batch == 0


def test_an_array_of_no_elements_of_dynamic_size_has_their_rank():
    compiled = df.function(states, input_signature=[df.TensorSpec([None, None, 3])])
    assert compiled(df.ones([2, 0, 3])).shape == (2, 0, 3)


def one_or_two_rows(x):
    array = df.TensorArray(df.float32, 2)
    if df.reduce_sum(x) > 0.0:
        array = array.write(0, x)
    return array.write(1, -x).stack()


@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0], [-1.0], []])
def test_one_branch_writes_the_first_element_of_dynamic_size(x):
    compiled = df.function(one_or_two_rows, input_signature=[df.TensorSpec([None])])
    x = df.constant(x, df.float32)
    assert compiled(x).numpy().tolist() == one_or_two_rows(x).numpy().tolist()
