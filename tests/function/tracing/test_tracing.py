"""What a trace records, and when a function is traced."""

from __future__ import annotations

import inspect
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df


def counted(function, **options):
    """``function`` as a traced one, and the list to which each trace adds its arguments."""
    traces = []

    def wrapped(*args, **kwargs):
        traces.append(args)
        return function(*args, **kwargs)

    return df.function(wrapped, **options), traces


def same(x, y=None):
    return x


def test_calls_with_equal_shapes_and_dtypes_share_a_trace():
    f, traces = counted(lambda x: x * 2.0)
    assert f(df.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    assert f(df.constant([3.0, 4.0])).numpy().tolist() == [6.0, 8.0]
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (df.constant([1.0]), df.constant([1.0, 2.0])),
        (df.constant([1.0]), df.constant([[1.0]])),
        (df.constant([1.0]), df.constant([1])),
        (df.constant(1.0), 1.0),
        (1, 1.0),
        (1, True),
        (0, False),
        (0.0, -0.0),
        ("a", "b"),
        ([1, 2], (1, 2)),
        ({"a": 1}, {"b": 1}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (None, 0),
        ([df.constant(1.0)], [df.constant(1.0)] * 2),
        (df.Variable(1.0), df.constant(1.0)),
    ],
    ids=repr,
)
def test_other_arguments_are_another_trace(first, second):
    f, traces = counted(lambda x: df.constant(0))
    f(first), f(second), f(first), f(second)
    assert len(traces) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (df.constant([1.0]), np.float32([5.0])),
        (float("nan"), float("nan")),
        (df.Variable(1.0), df.Variable(2.0)),
        ((1, [2, "x"]), (1, [2, "x"])),
        (np.float32(1), df.constant(7.0)),
    ],
    ids=repr,
)
def test_arguments_alike_share_a_trace(first, second):
    f, traces = counted(lambda x: df.constant(0))
    f(first), f(second)
    assert len(traces) == 1


@pytest.mark.filterwarnings("ignore::dualflow.function.RetracingWarning")
@given(
    st.lists(
        st.one_of(st.integers(-2, 2), st.floats(), st.booleans(), st.text(max_size=1)), min_size=1, max_size=8
    )
)
@settings(max_examples=40, deadline=None)
def test_python_values_trace_once_for_each_type_and_value(values):
    f, traces = counted(lambda x: df.constant(0))
    for value in values * 2:
        f(value)
    assert len(traces) == len({(type(v), v.hex() if type(v) is float else v) for v in values})


def test_arguments_are_bound_as_python_binds_them():
    f = df.function(lambda x, n=2, *, scale=1: x * n * scale)
    one = df.constant(1)
    assert [int(y) for y in (f(one), f(one, 2), f(x=one, n=2), f(one, scale=1))] == [2] * 4
    assert f.experimental_get_tracing_count() == 1
    assert int(f(one, scale=5)) == 10


def test_extra_positional_and_keyword_arguments_are_passed_on():
    f = df.function(lambda *xs, **named: xs[0] + xs[1] * named["w"])
    assert float(f(df.constant(1.0), df.constant(2.0), w=3.0)) == 7.0


def test_wrong_arguments_are_refused_with_the_signature():
    f = df.function(lambda x, y: x)
    with pytest.raises(TypeError, match=r"missing a required argument: 'y'.*\(x, y\)"):
        f(df.constant(1.0))


def test_variables_share_a_trace_by_their_aliasing():
    f, traces = counted(lambda a, b: a * 10.0 + b)
    v, w = df.Variable(1.0), df.Variable(2.0)
    assert [float(y) for y in (f(v, w), f(w, v), f(v, v), f(w, w))] == [12.0, 21.0, 11.0, 22.0]
    assert len(traces) == 2


def test_a_variable_that_is_argument_and_captured_is_one_variable():
    v, w = df.Variable(1.0), df.Variable(10.0)

    @df.function
    def f(x):
        x.assign_add(1.0)
        return v * 1.0

    assert float(f(v)) == 2.0
    assert float(f(w)) == 2.0
    assert float(f(v)) == 3.0
    assert (float(v), float(w)) == (3.0, 11.0)


def test_of_several_variable_arguments_one_may_be_captured():
    v, w, u = df.Variable(1.0), df.Variable(10.0), df.Variable(100.0)

    @df.function
    def f(x, y):
        x.assign_add(1.0)
        return v + y

    assert [float(z) for z in (f(w, v), f(v, w), f(w, u), f(u, w))] == [2.0, 13.0, 102.0, 14.0]
    assert [float(z) for z in (v, w, u)] == [2.0, 12.0, 101.0]


def test_objects_are_distinguished_by_equality():
    class Config:
        def __init__(self, rate):
            self.rate = rate

        def __eq__(self, other):
            return self.rate == other.rate

        def __hash__(self):
            return hash(self.rate)

    f, traces = counted(lambda x, c: x * c.rate)
    a, b, c = Config(2.0), Config(2.0), Config(3.0)
    assert [float(f(df.constant(1.0), k)) for k in (a, b, c)] == [2.0, 2.0, 3.0]
    assert len(traces) == 2


@pytest.mark.parametrize("value", [{1, 2}, bytearray(b"x")], ids=["set", "bytearray"])
def test_an_argument_without_a_hash_is_refused(value):
    with pytest.raises(TypeError, match="Could not generate a generic TraceType"):
        df.function(same)(value)


def test_two_threads_trace_once():
    barrier = threading.Barrier(4)
    f, traces = counted(lambda x: x + 1.0)
    results = []

    def work():
        barrier.wait()
        results.append(float(f(df.constant(1.0))))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [2.0] * 4
    assert len(traces) == 1


def test_functions_that_call_each_other_do_not_deadlock():
    even = df.function(lambda x, n: x if n == 0 else odd(x, n - 1))
    odd = df.function(lambda x, n: -x if n == 0 else even(x, n - 1))
    results = []
    threads = [
        threading.Thread(target=lambda g=g: results.append(float(g(df.constant(1.0), 5))))
        for g in (even, odd)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [-1.0, 1.0]


def test_endless_recursion_is_named():
    @df.function
    def f(x):
        return f(x)

    with pytest.raises(RecursionError, match="called itself"):
        f(df.constant(1.0))


def test_recursion_on_a_python_value_ends():
    @df.function
    def power(x, n):
        return x * power(x, n - 1) if n > 1 else x

    assert float(power(df.constant(2.0), 10)) == 1024.0


def test_an_exception_in_a_trace_leaves_nothing():
    fail = True

    @df.function
    def f(x):
        y = x * 2.0
        if fail:
            raise KeyError("mine")
        return y

    with pytest.raises(KeyError, match="mine"):
        f(df.constant(1.0))
    assert df.executing_eagerly()
    assert float(df.constant(1.0) + 1.0) == 2.0
    fail = False
    assert float(f(df.constant(1.0))) == 2.0


def test_input_signature_converts_and_traces_once():
    f = df.function(lambda x: df.reduce_sum(x), input_signature=[df.TensorSpec([2], df.float32)])
    assert [float(f(x)) for x in ([1, 2], np.array([1.0, 2.0]), df.constant([1.0, 2.0]), (1.0, 2))] == [
        3.0
    ] * 4
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("value", [[[1.0]], [1.0], df.constant([1, 2]), "ab"], ids=repr)
def test_input_signature_refuses_what_does_not_fit(value):
    f = df.function(lambda x: x, input_signature=[df.TensorSpec([2], df.float32)])
    with pytest.raises(TypeError, match="Binding inputs to"):
        f(value)


def test_input_signature_covers_every_parameter_without_a_default():
    spec = df.TensorSpec([2])
    with pytest.raises(TypeError, match="missing type constraint for flag"):
        df.function(lambda x, flag: x, input_signature=[spec])
    assert df.function(lambda x, flag=True: x, input_signature=[spec])([1.0, 2.0]).shape == (2,)


def test_input_signature_describes_structures():
    f = df.function(
        lambda d: d["a"] + d["b"][0], input_signature=[{"a": df.TensorSpec([]), "b": [df.TensorSpec([])]}]
    )
    assert float(f({"a": 1, "b": [2]})) == 3.0


@pytest.mark.filterwarnings("ignore::dualflow.function.RetracingWarning")
def test_the_oldest_of_too_many_traces_is_freed():
    f, traces = counted(lambda x, n: x + n)
    x = df.constant(1)
    limit = f.cache_info().maxsize
    for n in range(limit + 10):
        f(x, n)
        f(x, 0)
    assert f.cache_info().currsize == limit
    f(x, 0)
    assert len(traces) == limit + 10


def test_clear_cache_forgets_all():
    f, traces = counted(lambda x: x + 1.0)
    f(df.constant(1.0)), f(df.constant(1.0))
    f.clear_cache()
    assert f.cache_info().currsize == 0
    assert float(f(df.constant(1.0))) == 2.0
    assert len(traces) == 2


def chain(length):
    def run(x):
        for i in range(length // 5):
            x = x * 1.0001 + df.sin(x) * 0.001 * float(i % 7)
        return x

    return run


def test_tracing_takes_time_in_proportion_to_the_ops(lines_run):
    x = df.constant(np.ones(4, np.float32))
    small, large = (df.function(chain(n)) for n in (300, 3000))
    work = [lines_run(lambda f=f: f.get_concrete_function(x)) for f in (small, large)]
    assert work[1] < 11 * work[0]


@pytest.mark.llvm  # Numba's own passes recurse, and take a minute for a thousand ops
def test_a_deep_graph_needs_no_deep_stack():
    x = df.constant(np.ones(4, np.float32))
    f = df.function(chain(10_000))
    df.function(chain(10))(x)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        compiled = f(x)
    finally:
        sys.setrecursionlimit(before)
    assert np.allclose(compiled.numpy(), chain(10_000)(x).numpy(), rtol=1e-3)


def test_an_input_signature_of_a_method_leaves_out_self():
    class Model:
        @df.function(input_signature=[df.TensorSpec([None, 2])])
        def doubled(self, x):
            return x * 2.0

    assert Model().doubled([[1, 2]]).numpy().tolist() == [[2.0, 4.0]]


class Methods:
    """Traced functions of every kind that a class has."""

    @df.function
    def plain(self, x, y=1):
        return x + y

    @df.function(input_signature=[df.TensorSpec([2])])
    def specified(self, x):
        return x

    @df.function
    def starred(*args, k=1):
        return args[1] * k

    @classmethod
    @df.function
    def of_class(cls, x, y=1):
        return x + y

    @staticmethod
    @df.function
    def static(x, y=1):
        return x + y


@pytest.mark.parametrize(
    ("name", "bound", "of_the_class"),
    [
        ("plain", "(x, y=1)", "(self, x, y=1)"),
        ("specified", "(x)", "(self, x)"),
        ("starred", "(*args, k=1)", "(*args, k=1)"),
        ("of_class", "(x, y=1)", "(x, y=1)"),
        ("static", "(x, y=1)", "(x, y=1)"),
    ],
)
def test_methods_have_the_signature_of_python_s_own(name, bound, of_the_class):
    methods = Methods()
    assert str(inspect.signature(getattr(methods, name))) == bound
    assert str(inspect.signature(getattr(Methods, name))) == of_the_class
    result = inspect.signature(getattr(methods, name)).bind(df.ones([2]))
    assert getattr(methods, name)(*result.args, **result.kwargs).numpy().tolist() in ([1.0, 1.0], [2.0, 2.0])


def test_input_signature_describes_the_arguments_of_a_star():
    specs = [df.TensorSpec([None], df.float32)] * 3
    f = df.function(lambda first, *others: first + df.add_n(others), input_signature=specs)
    assert f([1.0], df.ones([1]), np.ones(1)).numpy().tolist() == [3.0]
    assert f(df.ones([2]), df.ones([2]), df.ones([2])).shape == (2,)
    assert f.experimental_get_tracing_count() == 1
    assert f.get_concrete_function()(df.ones([2]), df.ones([2]), df.ones([2])).numpy().tolist() == [3.0, 3.0]
    with pytest.raises(TypeError, match="structure of a tuple with 2 leaves"):
        f(df.ones([2]), df.ones([2]))
