"""After a failed call variables have the values that eager execution would have left."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import OutOfRangeError
from dualflow.function.calls import c_call
from dualflow.ops.random_numbers import draws
from dualflow.ops.random_numbers.streams import Stream


class ProgramState:
    """The variables and random streams of a program, and its log."""

    def __init__(self):
        self.v = df.Variable([1.0, 2.0, 3.0, 4.0], name="v")
        self.w = df.Variable([5.0, 6.0, 7.0, 8.0], name="w")
        self.rows = df.Variable(np.arange(12.0, dtype=np.float32).reshape(4, 3), name="rows")
        self.z = df.Variable(np.array([1 + 1j, 2.0], np.complex64), name="z")
        self.n = df.Variable(0, name="n")
        self.noise = Stream([3])
        self.generator = df.random.Generator.from_seed(3)
        self.log = []

    def state(self):
        held = [x.numpy().tolist() for x in (self.v, self.w, self.rows, self.z, self.n)]
        drawn = str(self.noise.philox.bit_generator.state), self.generator.state.numpy().tolist()
        return [*held, drawn, list(self.log)]


TABLE = [10.0, 20.0, 30.0, 40.0]


def refuse(x):
    if x > 3:
        raise KeyError("no")
    return x * 2


# Each takes a number: it succeeds in [0, 3], and raises above


def gather_before_an_update(s, i):
    s.v.assign_add(df.ones([4]) * df.gather(df.constant(TABLE), i))


def gather_in_the_update(s, i):
    s.v.assign_add(df.gather(s.w, [i, i, i, i]))


def gather_after_an_update(s, i):
    s.v.assign_add(s.w)
    s.w.assign(s.w * df.gather(df.constant(TABLE), i))


def gather_between_updates_of_one(s, i):
    s.v.assign_add(s.w)
    s.v.assign(s.v * df.gather(df.constant(TABLE), i))
    s.v.assign_sub(s.w)


def rows_scattered(s, i):
    s.rows.scatter_nd_sub([[0], [i]], df.ones([2, 3]))
    s.v.assign_add(s.w)


def rows_scattered_after_an_update(s, i):
    s.v.assign_add(s.w)
    s.rows.scatter_nd_add([[0], [i]], df.ones([2, 3]))
    s.w.assign_add(s.v)


def rows_scattered_twice(s, i):
    s.rows.scatter_nd_add([[1]], df.ones([1, 3]))
    s.rows.scatter_nd_update([[0], [i]], df.ones([2, 3]))


def indices_that_depend_on_an_update(s, i):
    s.n.assign_add(i)
    s.rows.scatter_nd_add([[s.n]], df.ones([1, 3]))


def training_step(s, i):
    s.n.assign_add(1)
    with df.GradientTape() as tape:
        features = df.nn.embedding_lookup(s.rows, df.stack([0, 2, i]))
        logits = df.stack([features[:, 0] * s.v[0], features[:, 1] * s.v[1]], 1)
        loss = df.reduce_sum(df.nn.sparse_softmax_cross_entropy_with_logits(df.stack([0, 1, 1]), logits))
    for variable, gradient in zip((s.rows, s.v), tape.gradient(loss, [s.rows, s.v]), strict=True):
        variable.assign_sub(0.5 * df.convert_to_tensor(gradient))
    return loss


def label_out_of_range(s, i):
    s.n.assign_add(1)
    with df.GradientTape() as tape:
        logits = df.stack([s.v, s.w])
        loss = df.reduce_sum(df.nn.sparse_softmax_cross_entropy_with_logits(df.stack([0, i]), logits))
    for variable, gradient in zip((s.v, s.w), tape.gradient(loss, [s.v, s.w]), strict=True):
        variable.assign_sub(0.5 * gradient)
    return loss


def raised_between_assignments(s, i):
    s.v.assign(s.v * 2.0)
    if i > 3:
        raise ValueError("no")
    s.w.assign(s.v)


def asserted_after_assignments(s, i):
    s.v.assign(s.v * 2.0)
    s.n.assign_add(i)
    assert s.n < 4, "too far"
    s.v.assign(s.v * 3.0)


def put_back_after_the_check(s, i):
    before = s.v.value()
    s.v.assign(s.w)
    if i > 3:
        raise ValueError("no")
    s.v.assign(before)


def assigned_in_one_branch(s, i):
    if i > 1:
        s.v.assign(s.v * 2.0)
        if i > 3:
            s.n.assign(77)
            raise ValueError("no")
        s.w.assign(s.v)
    else:
        s.w.assign_add(s.w)
    s.n.assign_add(1)


def check_in_a_loop(s, i):
    for k in df.range(6):
        s.v.assign_add(df.ones([4]))
        if s.n + i > 5:
            raise ValueError(f"iteration {int(k)}")
        s.n.assign_add(1)
        s.w.assign(s.v * 2.0)
    s.n.assign(0)


def gather_in_a_loop(s, i):
    k = df.constant(0)
    while k <= i:
        s.v.assign_add(df.ones([4]) * df.gather(df.constant(TABLE), k))
        s.w.assign_add(s.v)
        k += 1
    s.n.assign_add(1)


def loops_in_loops(s, i):
    for k in df.range(i):
        for m in df.range(k):
            s.v.assign_add(s.w)
            assert k + m < 5, "inside"
        s.n.assign_add(1)


def scan_that_assigns(s, i):
    def step(total, row):
        s.n.assign_add(1)
        return total + df.gather(df.constant(TABLE), row)

    s.v.assign_add(df.scan(step, df.range(40) // 10 + i // 4, initializer=0.0)[:4])


def map_that_assigns(s, i):
    def row(k):
        s.v.assign_add(df.ones([4]))
        return df.gather(df.constant(TABLE), k)

    s.w.assign(df.map_fn(row, df.range(40) // 10 + i // 4, fn_output_signature=df.float32)[-4:])


def python_that_raises(s, i):
    s.v.assign_add(s.w)
    y = df.py_function(refuse, [i], df.int32)
    s.n.assign_add(y)


def numpy_that_raises(s, i):
    s.v.assign_add(s.w)
    y = df.numpy_function(refuse, [i], df.int32)
    s.n.assign_add(y)


def python_before_it(s, i):
    s.n.assign_add(df.py_function(lambda x: s.log.append(int(x)) or x, [i], df.int32))
    df.print("so far", s.n, output_stream=s.log.append)
    s.v.assign_add(s.w)
    assert i <= 3, "no"
    df.print("after", output_stream=s.log.append)
    s.w.assign_add(s.w)


def python_in_a_loop(s, i):
    for k in df.range(i):
        s.n.assign_add(df.py_function(lambda x: s.log.append(int(x)) or refuse(x), [k], df.int32))
        s.v.assign_add(s.w)


def numpy_kernel_that_raises(s, i):
    s.v.assign_add(s.w)
    s.w.assign_add(df.gather_nd(s.v, df.reshape(i, [1, 1])) * s.w)


def complex_numbers(s, i):
    s.z.assign(s.z * 2j)
    s.v.assign_add(s.w)
    s.w.assign_add(df.gather(df.constant(TABLE), i) * s.v)
    s.z.assign(df.reverse(s.z, [0]))


def random_numbers(s, i):
    s.v.assign(draws.normal(s.noise, [4]))
    for k in df.range(5):
        s.w.assign_add(draws.uniform(s.noise, [4]))
        assert k + i < 8, "random"
    s.v.assign_add(draws.normal(s.noise, [4]))


def numbers_of_a_generator(s, i):
    s.v.assign(s.generator.normal([4]))
    for k in df.range(5):
        s.w.assign_add(s.generator.uniform([4]))
        assert k + i < 8, "random"
    s.v.assign_add(s.generator.normal([4]))


def division_by_zero(s, i):
    s.v.assign_add(s.w)
    s.n.assign_add(12 // df.maximum(4 - i, 0))


def nested_function(s, i):
    s.v.assign_add(s.w)
    s.inner(i)
    s.w.assign_add(s.w)


def nested_function_with_variables(s, i):
    s.assigning(s.v, i)
    s.assigning(s.w, i // 2)


def first_of_two_failures(s, i):
    s.v.assign_add(s.w)
    y = df.gather(df.constant(TABLE), i)
    if i > 3:
        raise ValueError("too late")
    s.w.assign_add(y * s.w)


PROGRAMS = [
    gather_before_an_update,
    gather_in_the_update,
    gather_after_an_update,
    gather_between_updates_of_one,
    rows_scattered,
    rows_scattered_after_an_update,
    rows_scattered_twice,
    indices_that_depend_on_an_update,
    training_step,
    label_out_of_range,
    raised_between_assignments,
    asserted_after_assignments,
    put_back_after_the_check,
    assigned_in_one_branch,
    check_in_a_loop,
    gather_in_a_loop,
    loops_in_loops,
    scan_that_assigns,
    map_that_assigns,
    python_that_raises,
    numpy_that_raises,
    python_before_it,
    python_in_a_loop,
    numpy_kernel_that_raises,
    complex_numbers,
    random_numbers,
    numbers_of_a_generator,
    division_by_zero,
    nested_function,
    nested_function_with_variables,
    first_of_two_failures,
]


def new_state():
    created = ProgramState()

    @df.function
    def inner(i):
        created.n.assign_add(1)
        assert i < 4, "inner"
        created.v.assign(created.v * 2.0)

    @df.function
    def assigning(variable, i):
        variable.assign(variable * 3.0)
        assert i < 4, "assigning"
        variable.assign_add(variable)

    created.inner, created.assigning = inner, assigning
    return created


def eagerly(call):
    df.config.run_functions_eagerly(True)
    try:
        return outcome(call)
    finally:
        df.config.run_functions_eagerly(False)


def outcome(call):
    """The type of what a call raises, None if it returns."""
    try:
        call()
    except Exception as error:
        return type(error)
    return None


def close(a, b):
    """Whether two states are equal, but for how numbers were rounded."""
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b or (isinstance(a, float | complex) and abs(a - b) <= 1e-5 * abs(b))


CALLS = {"at first": [9], "later": [1, 2, 0, 9, 1, 9, 3], "again and again": [2, 9, 9, 9, 0]}


@pytest.mark.parametrize("numbers", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_failed_call_leaves_what_eager_code_leaves(program, numbers):
    eager, compiled = new_state(), new_state()
    f = df.function(lambda i: program(compiled, i))
    failures = 0
    for i in map(df.constant, numbers):
        expected = eagerly(partial(program, eager, i))
        assert outcome(partial(f, i)) is expected
        assert close(compiled.state(), eager.state())
        failures += expected is not None
    assert failures


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_without_the_c_fast_call(program, monkeypatch):
    monkeypatch.setattr(c_call, "probe", lambda tensor_class: None)
    test_a_failed_call_leaves_what_eager_code_leaves(program, CALLS["later"])


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p is not python_in_a_loop])
def test_the_same_under_a_tape(program):
    eager, compiled = new_state(), new_state()
    f = df.function(lambda i, x: (program(compiled, i), x * x * compiled.v)[1])
    x = df.constant(3.0)

    def gradient(i):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(i, x)
        return tape.gradient(y, x)

    for i in map(df.constant, (1, 9, 2, 9)):
        expected = eagerly(partial(program, eager, i))
        assert outcome(partial(gradient, i)) is expected
        assert close(compiled.state(), eager.state())


def test_nothing_is_written_after_a_failed_gather_of_variables_alone():
    v, x = df.Variable(df.zeros([4])), df.constant([1.0, 2.0, 3.0])
    f = df.function(lambda i: v.assign_add(df.ones([4]) * df.gather(x, i)[0]))
    for _ in range(3):
        with pytest.raises(OutOfRangeError):
            f(df.constant([7]))
        assert v.numpy().tolist() == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8"])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 40])
def test_all_indices_are_checked_before_rows_are_written(count, dtype):
    rows = df.Variable(df.zeros([50, 2]))
    f = df.function(lambda i, x: rows.scatter_nd_add(i, x))
    good = np.arange(count, dtype=dtype).reshape(count, 1)
    f(df.constant(good), df.ones([count, 2]))
    before = rows.numpy()
    for place in range(count):
        for wrong in (50, 100) if dtype == "uint8" else (50, -1):
            bad = good.copy()
            bad[place] = wrong
            with pytest.raises(OutOfRangeError):
                f(df.constant(bad), df.ones([count, 2]))
            np.testing.assert_array_equal(rows, before)
    f(df.constant(good), df.ones([count, 2]))
    np.testing.assert_array_equal(rows, 2 * before)


@pytest.mark.parametrize("place", [(0, 5), (4, 0), (-1, 0), (0, -1)])
def test_each_part_of_a_position_is_checked(place):
    rows = df.Variable(df.zeros([4, 5]))
    f = df.function(lambda i: rows.scatter_nd_update(i, df.ones([2])))
    f(df.constant([[0, 0], [3, 4]]))
    with pytest.raises(OutOfRangeError):
        f(df.constant([[1, 1], place]))
    assert float(df.reduce_sum(rows)) == 2.0


def test_a_variable_that_is_an_argument():
    v, w = df.Variable([1.0, 2.0]), df.Variable([3.0, 4.0])

    @df.function
    def f(variable, i):
        variable.assign(variable * 2.0)
        if i > 3:
            raise ValueError("no")
        variable.assign(variable * 3.0)

    for variable, result in ((v, [[6.0, 12.0], [12.0, 24.0]]), (w, [[18.0, 24.0], [36.0, 48.0]])):
        f(variable, df.constant(1))
        assert variable.numpy().tolist() == result[0]
        with pytest.raises(ValueError, match="no"):
            f(variable, df.constant(9))
        assert variable.numpy().tolist() == result[1]


def test_a_variable_that_the_first_call_creates():
    held = []

    @df.function
    def f(i):
        if not held:
            held.append(df.Variable(1.0))
        held[0].assign_add(1.0)
        if i > 3:
            raise ValueError("no")
        held[0].assign_add(10.0)

    for i, expected in ((9, 2.0), (1, 13.0), (9, 14.0)):
        if i > 3:
            with pytest.raises(ValueError, match="no"):
                f(df.constant(i))
        else:
            f(df.constant(i))
        assert held[0].numpy() == expected


def test_sizes_that_only_a_call_reports():
    v, w = df.Variable(0.0), df.Variable(0.0)

    @df.function(input_signature=[df.TensorSpec([None], df.float32), df.TensorSpec([], df.int32)])
    def f(x, iterations):
        v.assign(df.reduce_sum(x))
        for k in df.range(iterations):
            w.assign_add(v)
            assert k < 3, "far"
        return x

    for x, iterations, expected in (
        ([1.0], 2, 2.0),
        ([1.0, 2.0], 9, 14.0),
        ([5.0], 9, 34.0),
        ([1.0], 1, 35.0),
    ):
        assert outcome(partial(f, df.constant(x), df.constant(iterations))) is (
            AssertionError if iterations > 4 else None
        )
        assert (v.numpy(), w.numpy()) == (sum(x), expected)


def test_the_first_of_two_failing_lines_is_reported():
    v = df.Variable(0.0)

    @df.function
    def f(x, i):
        v.assign_add(1.0)
        y = df.gather(df.constant(TABLE), i)
        if x > 3:
            raise OverflowError("second")
        v.assign(y)

    with pytest.raises(OutOfRangeError, match="gather"):
        f(df.constant(9), df.constant(9))
    with pytest.raises(OverflowError):
        f(df.constant(9), df.constant(0))


def test_a_call_that_does_not_begin_does_nothing():
    """A compiled call inside of another one's Python can't change the same variable; it prints nothing."""
    v, log = df.Variable(0.0), []

    @df.function
    def inner(x):
        v.assign_add(x)
        df.print("inner", output_stream=log.append)
        v.assign_add(x)

    @df.function
    def outer(x):
        v.assign_add(100.0)
        df.py_function(lambda y: inner(y), [x], None)
        v.assign_add(x)

    inner(df.constant(1.0))
    log.clear()
    for _ in range(2):
        v.assign(2.0)
        with pytest.raises(df.errors.FailedPreconditionError):
            outer(df.constant(1.0))
        assert (float(v), log) == (102.0, [])


def test_an_exception_is_made_once():
    v, created = df.Variable(0.0), []

    def error(x):
        created.append(int(x))
        return ValueError("no")

    @df.function
    def f(i):
        v.assign_add(1.0)
        if i > 3:
            raise error(i)

    for calls in (1, 2, 3):
        with pytest.raises(ValueError, match="no"):
            f(df.constant(9))
        assert (v.numpy(), created) == (calls, [9] * calls)


def test_an_exception_reads_variables_as_they_are_on_its_line():
    n = df.Variable(0)

    @df.function
    def f(i):
        n.assign_add(i)
        if n > 3:
            raise ValueError(f"{int(n)} of {n.numpy()}")
        n.assign(100)

    for _ in range(3):
        n.assign(0)
        with pytest.raises(ValueError, match="9 of 9"):
            f(df.constant(9))


def test_other_threads_see_all_of_it_or_nothing():
    """While a failed call is settled, its variables hold their old values for other threads."""
    v, w, pairs = df.Variable(0.0), df.Variable(0.0), set()

    @df.function
    def f(iterations):
        for k in df.range(iterations):
            v.assign_add(1.0)
            w.assign_add(1.0)
            assert k < 200, "far"

    done = threading.Event()

    def watch():
        while not done.is_set():
            pairs.add((float(v), float(w)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    with pytest.raises(AssertionError):
        f(df.constant(1000))
    done.set()
    watcher.join()
    assert pairs | {(0.0, 0.0)} <= {(0.0, 0.0), (0.0, 201.0), (201.0, 201.0)}
    assert (float(v), float(w)) == (201.0, 201.0)
