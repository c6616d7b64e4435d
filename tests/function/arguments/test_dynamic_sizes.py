"""Signatures with dynamic sizes: one trace, compiled for the sizes of each call."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import FailedPreconditionError

ROWS = df.TensorSpec([None, 2])


def counted(signature):
    traces = []

    @df.function(input_signature=signature)
    def mean(x):
        traces.append(x.shape)
        return df.reduce_sum(x, axis=0) / df.cast(df.shape(x)[0], df.float32)

    return mean, traces


def test_python_sees_the_dynamic_size_once():
    mean, traces = counted([ROWS])
    for n in (1, 3, 50):
        x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2)
        np.testing.assert_allclose(mean(x).numpy(), x.mean(0), rtol=1e-6)
    assert traces == [(None, 2)]


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [[1.0]], [[[1.0, 2.0]]]])
def test_another_rank_or_known_size_is_refused(wrong):
    mean, _ = counted([ROWS])
    with pytest.raises(TypeError, match="Can not cast"):
        mean(df.constant(wrong))


def test_an_eager_tape_goes_through():
    mean, _ = counted([ROWS])
    x = df.constant([[1.0, 2.0], [3.0, 4.0]])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(mean(x) ** 2)
    assert tape.gradient(y, x).numpy().tolist() == [[2.0, 3.0], [2.0, 3.0]]


def test_variables_are_assigned():
    total = df.Variable(0.0)

    @df.function(input_signature=[df.TensorSpec([None])])
    def add(x):
        total.assign_add(df.reduce_sum(x))
        return total * 1.0

    assert [float(add(df.ones([n]))) for n in (2, 3)] == [2.0, 5.0] == [2.0, float(total)]


def test_a_spec_gives_a_concrete_function_for_all_sizes():
    f = df.function(lambda x: x * 2.0).get_concrete_function(df.TensorSpec([None]))
    assert [len(f(df.ones([n])).numpy()) for n in (1, 4)] == [1, 4]


def test_compile_stats_are_complete_after_a_call():
    f = df.function(lambda x: x * 2.0).get_concrete_function(df.TensorSpec([None]))
    with pytest.raises(FailedPreconditionError, match="call it"):
        f.parts  # noqa: B018  the property compiles
    f(df.ones([3]))
    assert [p.kind for p in f.parts] == ["native"]


@pytest.mark.llvm  # about its machine code
def test_another_size_uses_the_same_machine_code():
    f = df.function(lambda x: df.nn.softmax(x)).get_concrete_function(df.TensorSpec([None, 8]))
    f(df.ones([5, 8]))
    executable = f._latest.executable
    f(df.ones([7, 8]))
    assert f._latest.executable is executable


@df.function(input_signature=[df.TensorSpec([None])])
def grown(x):
    y = x
    while df.reduce_sum(y) < 100.0:
        y = y * x if df.reduce_sum(y) > 5.0 else y + x
    return y


@df.function(input_signature=[df.TensorSpec([None])])
def slope(x):
    with df.GradientTape() as tape:
        tape.watch(x)
        y = grown(x)
    return tape.gradient(y, x)


def test_loops_and_conds_take_the_sizes_of_each_call():
    for n in (1, 3, 4):
        x = df.fill([n], 2.0)
        np.testing.assert_array_equal(grown(x), grown.python_function(x))
    assert [part.kind for part in grown.concrete_functions[0].parts] == ["native"]


def test_gradients_of_loops_take_the_sizes_of_each_call():
    for n in (1, 3, 4):
        x = df.fill([n], 2.0)
        with df.GradientTape(persistent=True) as tape:
            tape.watch(x)
            now, compiled = grown.python_function(x), grown(x)
        np.testing.assert_array_equal(tape.gradient(compiled, x), tape.gradient(now, x))
        np.testing.assert_array_equal(slope(x), tape.gradient(now, x))


# Sizes in which calls differ (reduce_retracing).


def relaxing(body=lambda x: df.reduce_sum(x, axis=-1), **options):
    shapes = []

    def f(x, *more):
        shapes.append(tuple(x.shape))
        return body(x, *more)

    return df.function(f, reduce_retracing=True, **options), shapes


def test_the_second_size_is_left_open():
    f, shapes = relaxing()
    for shape in [(2, 3), (2, 4), (2, 9), (3, 9), (2, 3), (7, 1)]:
        np.testing.assert_array_equal(f(df.ones(shape)).numpy(), np.full(shape[0], shape[1]))
    assert shapes == [(2, 3), (2, None), (None, None)]


def test_exact_sizes_are_traces_of_their_own():
    f = df.function(lambda x: x, sizes="exact")
    for n in (2, 3, 4, 5, 2):
        f(df.ones([n]))
    assert f.experimental_get_tracing_count() == 4


def test_the_earlier_name_of_the_option_does_the_same():
    f = df.function(lambda x: x * 2.0, experimental_relax_shapes=True)
    for n in (2, 3, 4, 5):
        f(df.ones([n]))
    assert f.experimental_get_tracing_count() == 2


@pytest.mark.filterwarnings("ignore:.*retracing:UserWarning")
def test_another_rank_dtype_or_python_value_is_another_trace():
    f, shapes = relaxing(lambda x, n: x * n)
    for n in (2.0, 3.0):
        for size in (1, 2, 3):
            f(df.ones([size]), n)
    assert shapes == [(1,), (None,)] * 2
    f(df.ones([4], df.float64), 2.0), f(df.ones([4, 4]), 2.0)
    assert shapes[4:] == [(4,), (4, 4)]


def test_dynamic_sizes_in_structures_and_keywords():
    f = df.function(lambda pair, *, shift: pair["a"] @ pair["b"] + shift, reduce_retracing=True)
    for n in (1, 2, 3, 4):
        result = f(pair={"a": df.ones([2, n]), "b": df.ones([n, 2])}, shift=df.constant(1.0))
        assert result.numpy().tolist() == [[n + 1.0] * 2] * 2
    assert f.experimental_get_tracing_count() == 2


def test_explain_reports_what_was_left_open():
    f, _ = relaxing()
    f(df.ones([2, 3])), f(df.ones([2, 4]))
    assert "2. at call 2: x: float32[2, ?]  because axis 1 of x went from 3 to 4" in f.explain()


def test_a_function_that_needs_the_size_is_traced_for_each_and_reports_why():
    f, shapes = relaxing(lambda x: df.add_n([x[i] for i in range(x.shape[0])]))
    for n in (2, 3, 4):
        assert float(f(df.ones([n]))) == n
    assert shapes == [(2,), (None,), (3,), (4,)]
    assert "Sizes can't be dynamic, as the function needs them: TypeError" in f.explain()


def test_an_error_that_is_not_about_sizes_is_the_users():
    def body(x):
        if x.shape != (2,):
            raise KeyError("mine")
        return x

    f, _ = relaxing(body)
    f(df.ones([2]))
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            f(df.ones([3]))
    assert "Sizes" not in f.explain()


def test_a_trace_for_any_size_serves_calls_of_one():
    f = df.function(lambda x: x * 2.0)
    general = f.get_concrete_function(df.TensorSpec([None]))
    assert f(df.ones([3])).shape == (3,)
    assert f.get_concrete_function(df.TensorSpec([3])) is general
    assert f.experimental_get_tracing_count() == 1


def test_a_trace_for_one_size_serves_no_spec_of_any():
    f = df.function(lambda x: x * 2.0)
    f(df.ones([3]))
    assert f.get_concrete_function(df.TensorSpec([None])).inputs == [df.TensorSpec([None])]


def test_the_trace_with_the_fewest_dynamic_sizes_serves():
    f = df.function(lambda x: x * 2.0)
    specs = [[None, None], [2, None], [None, 3]]
    traces = [f.get_concrete_function(df.TensorSpec(s)) for s in reversed(specs)][::-1]
    f(df.ones([2, 3]))
    assert traces[0].last_call == 0
    assert f.experimental_get_tracing_count() == 3
    f(df.ones([5, 5]))
    assert f.experimental_get_tracing_count() == 3


def test_gradients_and_updates_go_through_dynamic_sizes():
    total = df.Variable(0.0)

    @df.function(reduce_retracing=True)
    def step(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(x * x)
        total.assign_add(y)
        return tape.gradient(y, x)

    for n in (1, 2, 3, 2):
        assert step(df.ones([n])).numpy().tolist() == [2.0] * n
    assert float(total) == 8.0


@pytest.mark.llvm  # about its fast path
def test_a_repeated_size_is_as_short_as_a_known_one(lines_run):
    f, _ = relaxing()
    for n in (2, 3, 4, 4, 4):
        f(df.ones([n, n]))
    x = df.constant(np.ones((4, 4), np.float32))
    assert lines_run(lambda: f(x)) <= 7


def test_a_signature_may_leave_the_rank_open():
    traces = []

    @df.function(input_signature=[df.TensorSpec(None), df.TensorSpec([], df.int32)])
    def total(x, n):
        traces.append(x.shape)
        return df.reduce_sum(x) * df.cast(n, df.float32)

    for _ in range(2):
        totals = [float(total(np.ones(s), 2)) for s in ([3], [], [2, 2], [4], [3, 1], [])]
        assert totals == [6.0, 2.0, 8.0, 8.0, 6.0, 2.0]
    assert traces == [(None,), (), (None, None)]
    with pytest.raises(TypeError, match=r"Can not cast TensorSpec\(shape=\(2,\), dtype=tf.int32"):
        total(df.constant([1, 2]), 2)


def test_a_trace_needs_the_rank():
    total = df.function(lambda x: df.reduce_sum(x), input_signature=[df.TensorSpec(None)])
    with pytest.raises(
        ValueError, match=r"rank of a tensor is unknown .* Give the placeholder, or the spec, a shape"
    ):
        total.get_concrete_function()
    assert total.get_concrete_function(df.TensorSpec([2, 3])).structured_input_signature is not None


# Batches


def test_a_function_of_batches_leaves_the_first_size_open():
    shapes = []

    @df.function(reduce_retracing="batch")
    def total(x):
        shapes.append(tuple(x.shape))
        return df.reduce_sum(x)

    for rows in (4, 3, 5):
        assert total(np.ones((rows, 2), np.float32)).numpy() == 2 * rows
    assert shapes == [(4, 2), (None, 2)]


def test_rows_of_another_size_have_a_trace_of_their_own_until_there_are_several():
    shapes = []

    @df.function(reduce_retracing="batch")
    def total(x):
        shapes.append(tuple(x.shape))
        return df.reduce_sum(x)

    for size in (2, 3, 4, 5, 6):
        assert total(np.ones((4, size), np.float32)).numpy() == 4 * size
    assert shapes == [(4, 2), (4, 3), (4, 4), (4, None)]


def test_a_tensor_indexes_a_dynamic_axis():
    f = df.function(lambda x, i: x[i], input_signature=[ROWS, df.TensorSpec([], df.int32)])
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    for i in (0, 2, -1, -3):
        np.testing.assert_array_equal(f(x, i).numpy(), x[i])
    for i in (3, -4):
        with pytest.raises(IndexError, match="out of range"):
            f(x, i)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sum(x[i] for i in range(x.shape[0])),
        lambda x: x * (x.shape[0] * 2),
        lambda x: df.reduce_sum(x) / x.shape[0],
        lambda x: df.zeros([x.shape[0], 2]),
        lambda x: df.random.normal([x.shape[0]]),
    ],
)
def test_a_dynamic_size_taken_for_a_number_is_named(function):
    traced = df.function(function, input_signature=[df.TensorSpec([None, 3], name="rows")])
    message = r"The size of axis 0 of rows \(float32\[\?, 3\]\).*use len\(rows\) or df.shape\(rows\)\[0\]"
    with pytest.raises(TypeError, match=message):
        traced(df.ones([4, 3]))


def test_a_size_that_data_decide_taken_for_a_number_names_what_made_it():
    with pytest.raises(TypeError, match=r"the result of boolean_mask in line \d+ is known only at run time"):
        df.function(lambda x: df.boolean_mask(x, x > 0.0) * df.boolean_mask(x, x > 0.0).shape[0])(
            df.ones([3])
        )


def test_none_that_is_no_size_is_no_number():
    with pytest.raises(TypeError, match=r"^add: None can't become a tensor; give a number or a tensor.$"):
        df.function(lambda x: x + None)(df.ones([3]))


def test_sizes_of_a_call_that_do_not_fit_are_an_error_of_the_line():
    f = df.function(lambda x, y: x + y, input_signature=[df.TensorSpec([None]), df.TensorSpec([None])])
    with pytest.raises(df.errors.InvalidArgumentError, match="do not broadcast") as caught:
        f(df.ones([2]), df.ones([3]))
    assert caught.value.__notes__[0].startswith("in add, called at File")
    assert __file__ in caught.value.__notes__[0]
