"""Repeated calls of every form: their results, and that later calls run almost no Python."""

import gc
import os
import weakref

import numpy as np
import pytest
from forked_programs import run_forked
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.llvm.runtime.fastcall import Descriptor
from dualflow.function.calls.call_cache import MAX_KINDS, CallCache

pytestmark = pytest.mark.llvm
X, Y = df.constant([1.0, 2.0]), df.constant([10.0, 20.0])


def combined(x, y=Y, *, scale=1, minus=False):
    return (x - y if minus else x + y) * float(scale)


FORMS = {
    "positional": lambda f: f(X, Y),
    "by name": lambda f: f(X, y=Y),
    "in another order": lambda f: f(y=Y, x=X),
    "with a Python value": lambda f: f(X, Y, scale=2),
    "with Python values first": lambda f: f(minus=True, scale=3, y=X, x=Y),
    "with a float": lambda f: f(X, Y, scale=0.5),
    "arrays": lambda f: f(X.numpy(), scale=2, y=Y.numpy()),
    "an array and a tensor": lambda f: f(X, Y.numpy()),
    "one tensor twice": lambda f: f(y=X, x=X, minus=True),
}


@pytest.mark.filterwarnings("ignore:.*retracing:UserWarning")
@settings(deadline=None)
@given(st.lists(st.sampled_from(sorted(FORMS)), min_size=1, max_size=30))
def test_calls_in_any_order_of_forms_compute_what_python_does(order):
    f = df.function(combined)
    for form in order:
        np.testing.assert_array_equal(FORMS[form](f), FORMS[form](combined), err_msg=form)


@pytest.mark.parametrize("form", [form for form in FORMS if "array" not in form])
def test_a_repeated_call_runs_next_to_no_python(form, lines_run):
    f = df.function(combined)
    call = FORMS[form]
    for _ in range(3):
        call(f)
    assert lines_run(lambda: call(f)) <= 14


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        (lambda x: [x + 1.0, x * 2.0], 0),
        (lambda x: {"b": x + 1.0, "a": x * 2.0}, 6),
        (lambda x: (x + 1.0, [x * 2.0, x * 3.0]), 6),
    ],
    ids=["list", "dict", "list in a tuple"],
)
def test_results_in_a_structure_take_few_lines_more_than_one_tensor(result, lines, lines_run):
    f, one = df.function(result), df.function(lambda x: x + 1.0)
    for _ in range(3):
        f(X), one(X)
    assert lines_run(lambda: f(X)) <= lines_run(lambda: one(X)) + lines


def test_arrays_are_converted_and_nothing_else(lines_run):
    f = df.function(combined)
    x, y = X.numpy(), Y.numpy()
    for _ in range(3):
        f(x, y)
    assert lines_run(lambda: f(x, y)) <= 100
    assert f.experimental_get_tracing_count() == 1


def test_arrays_change_between_calls():
    f = df.function(combined)
    x = np.array([1.0, 2.0], np.float32)
    for _ in range(4):
        before = f(x, x)
        x += 1.0
        assert f(x, x).numpy().tolist() == (2.0 * x).tolist()
        assert before.numpy().tolist() == (2.0 * x - 2.0).tolist()


def test_arrays_are_converted_to_the_dtype_of_a_signature():
    f = df.function(lambda x: x * 2.0, input_signature=[df.TensorSpec([2])])
    for _ in range(3):
        assert f(np.array([1.0, 2.0])).dtype is df.float32


def test_an_array_of_another_dtype_is_another_trace():
    f = df.function(lambda x: x * 2)
    for _ in range(3):
        for dtype in (np.float32, np.float64, np.int32):
            assert f(np.ones(2, dtype)).numpy().dtype == dtype


def test_a_default_is_no_detour(lines_run):
    f = df.function(lambda x, n=2: x * float(n))
    for _ in range(3):
        f(X)
    assert lines_run(lambda: f(X)) <= 7


def test_calls_of_two_forms_alternately_are_both_short(lines_run):
    f = df.function(combined)

    def both():
        return f(X, Y, scale=2), f(X, Y)

    for _ in range(3):
        both()
    assert lines_run(both) <= 24


def test_a_concrete_function_is_as_short(lines_run):
    f = df.function(combined).get_concrete_function(X, Y, scale=2)
    for _ in range(3):
        f(X, Y)
    assert lines_run(lambda: f(X, Y)) <= 6
    assert f(Y, X).numpy().tolist() == [22.0, 44.0]
    assert f([1.0, 1.0], y=X).numpy().tolist() == [4.0, 6.0]


def c_functions(name):
    """The C functions that this process has for graphs of this name."""
    return sum(type(x) is Descriptor and x.name == name for x in gc.get_objects())


@pytest.mark.parametrize(
    "argument", [lambda *tensors: tensors, lambda *tensors: (list(tensors),)], ids=["tensors", "list"]
)
def test_a_trace_has_one_c_function(argument, request):
    name = f"one_c_function_for_{request.node.callspec.id}"
    f = df.function(lambda *args: df.add_n(df.nest.flatten(args)), name=name)
    concrete = f.get_concrete_function(*argument(X, Y))
    for _ in range(3):
        assert f(*argument(X, Y)).numpy().tolist() == [11.0, 22.0]
        assert concrete(X, Y).numpy().tolist() == [11.0, 22.0]
        with df.GradientTape():
            f(*argument(X, Y))
    assert c_functions(name) == 1


def test_calls_with_equal_python_values_share_a_c_function(lines_run):
    f = df.function(combined, name="shared")
    for i in range(6):
        x = (X, X.numpy())[i % 2]
        assert f(x, Y, scale=float(f"{i * 0.0 + 0.5}")).numpy().tolist() == [5.5, 11.0]
    assert c_functions("shared") == 1


def test_a_call_that_writes_a_variable_by_the_interpreter_skips_the_signature(lines_run):
    total = df.Variable(0.0)

    @df.function
    def add(x):
        return total.assign_add(df.reduce_sum(df.numpy_function(np.negative, [x], df.float32)))

    assert [float(add(X)) for _ in range(4)] == [-3.0, -6.0, -9.0, -12.0]
    concrete = add.get_concrete_function(X)
    tensors = (X,)
    slow = lines_run(lambda: concrete.compiled.execute(*tensors))
    assert lines_run(lambda: add(X)) <= slow + 20


def test_a_refused_call_runs_once_and_counts_once():
    total = df.Variable([1.0, 2.0])
    f = df.function(lambda x: total.assign_add(x))
    for i in range(1, 6):
        held = total.read_value()  # so that the C fast call can't write to the variable's buffer
        assert f(X).numpy().tolist() == [1.0 + i, 2.0 + 2 * i]
        assert held.numpy().tolist() == [float(i), 2.0 * i]


@pytest.mark.parametrize("values", [(1, True, 1.0), (0.0, -0.0), (0, False, None), (1000, 1000.0)])
def test_python_values_that_are_equal_but_not_the_same_stay_apart(values):
    f = df.function(lambda x, n: df.constant(repr(n) == repr(values[0])))
    for _ in range(3):
        assert [bool(f(X, n=v)) for v in values] == [True] + [False] * (len(values) - 1)


def test_equal_python_values_that_are_two_objects_are_one_trace():
    f = df.function(lambda x, n: x * float(n))
    for start in (1000, 1001, 1000):
        assert f(X, n=start + 1).numpy().tolist() == [start + 1.0, 2.0 * (start + 1)]
    assert f.experimental_get_tracing_count() == 2


def test_another_shape_or_dtype_by_name_is_another_trace():
    f = df.function(combined)
    for _ in range(3):
        assert f(X, y=Y).shape == (2,)
    assert f(X, y=df.ones([3, 1])).shape == (3, 2)
    assert f(df.constant([1, 2]), y=df.constant([3, 4])).dtype is df.float32


def test_a_tape_sees_calls_by_name():
    f = df.function(combined)
    for _ in range(3):
        f(X, y=Y)
    with df.GradientTape() as tape:
        tape.watch([X, Y])
        z = f(y=Y, x=X, minus=True)
    assert [g.numpy().tolist() for g in tape.gradient(z, [X, Y])] == [[1.0, 1.0], [-1.0, -1.0]]


def test_a_keyword_that_is_no_parameter_is_refused_each_time():
    f = df.function(combined)
    for _ in range(3):
        with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
            f(X, z=Y)


def test_extra_keywords_reach_the_function_under_their_names():
    f = df.function(lambda x, **more: x * more["b"] - more["a"])
    for _ in range(3):
        assert f(X, b=Y, a=X).numpy().tolist() == [9.0, 38.0]
        assert f(X, a=X, b=Y).numpy().tolist() == [9.0, 38.0]


def test_methods_take_keywords():
    class Scale:
        @df.function
        def call(self, x, training=False):
            return x * 2.0 if training else x

    scale = Scale()
    for _ in range(3):
        assert scale.call(x=X, training=True).numpy().tolist() == [2.0, 4.0]
        assert scale.call(X).numpy().tolist() == [1.0, 2.0]


def test_variables_are_updated_by_calls_with_keywords():
    total = df.Variable(0.0)

    @df.function
    def add(x, times=1):
        return total.assign_add(df.reduce_sum(x) * float(times))

    assert [float(add(x=X, times=2)) for _ in range(4)] == [6.0, 12.0, 18.0, 24.0]


def test_a_function_called_by_name_is_freed():
    f = df.function(combined)
    for _ in range(3):
        f(X, y=Y, scale=2)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


def test_shapes_without_end_take_bounded_memory():
    trace = df.function(lambda x: x).get_concrete_function(df.TensorSpec([None]))
    latest = CallCache()
    for n in range(3 * MAX_KINDS):
        latest.keep(n, trace, None)
    assert latest.find(3 * MAX_KINDS - 1)
    assert sum(latest.find(n) is not None for n in range(3 * MAX_KINDS)) <= MAX_KINDS


COUNTED = """
import sys

import dualflow as df
from dualflow.function.calls.fast_paths import Preparation

x, f, runs = df.constant([1.0, 2.0]), df.function(lambda x: x + 1.0), 0


def listen(frame, event, arg):
    global runs
    runs += event == "line"
    return listen


def lines():
    global runs
    runs = 0
    sys.settrace(listen)
    f(x)
    sys.settrace(None)
    return runs


def once_more(calls):
    for _ in range(calls):
        f(x)
    return lines()


third = once_more(2)
once_more(100)
Preparation.thread.join()
print(third, once_more(1))
"""


def test_the_c_fast_call_is_used_once_a_process_has_made_many_calls(tmp_path):
    environment = {**os.environ, "DUALFLOW_CACHE_DIR": str(tmp_path)}
    for _ in range(2):  # whether its code is on disk
        third, later = map(int, run_forked(["-c", COUNTED], env=environment).stdout.split())
        assert later < 10 < third


EARLY_SIZES = """
import dualflow as df
import numpy as np


def ones(n):
    return df.constant(np.ones(n, np.float32))


f = df.function(lambda x, y: df.reduce_sum(x * y) / x.shape[0])
results = [f(ones(n), ones(m)).numpy() for n, m in [(3, 3), (4, 4), (5, 5), (300, 300), (6, 6)]]
bound = []
bind = f._signature.bind
f._signature.bind = lambda *args: bound.append(args) or bind(*args)
results.append(f(ones(7), ones(7)).numpy())
print(results == [1.0] * 6, len(bound))
try:
    f(ones(7), ones(8))
except ValueError as error:
    print(type(error).__name__)
results = [f(ones(n), ones(1)).numpy() for n in (8, 1, 400)]
print(results == [1.0] * 3)
"""


def test_the_first_call_after_the_program_for_all_sizes_is_as_short_as_later_ones(lines_run):
    f = df.function(lambda x: df.reduce_sum(x * 2.0))
    f(df.ones([3])), f(df.ones([5]))
    x, y = df.ones([7]), df.ones([9])
    assert lines_run(lambda: f(x)) <= lines_run(lambda: f(y))


def test_the_first_calls_of_a_process_bind_no_arguments_for_a_new_size(tmp_path):
    environment = {**os.environ, "DUALFLOW_CACHE_DIR": str(tmp_path)}
    for _ in range(2):  # whether the programs are on disk
        lines = run_forked(["-c", EARLY_SIZES], env=environment).stdout.split("\n")
        assert lines[:3] == ["True 0", "InvalidArgumentError", "True"]
