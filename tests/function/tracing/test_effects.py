"""Side effects of a compiled function happen once per call, in the order of the program."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df

STEPS = st.sampled_from(["add", "copy", "swap", "draw", "print", "python"])
PROGRAMS = st.lists(
    st.recursive(
        STEPS,
        lambda inner: (
            st.tuples(st.just("if"), st.lists(inner, max_size=3), st.lists(inner, max_size=3))
            | st.tuples(st.just("repeat"), st.integers(0, 3), st.lists(inner, min_size=1, max_size=3))
        ),
        max_leaves=6,
    ),
    min_size=1,
    max_size=5,
)


class World:
    """All that a program can change."""

    def __init__(self):
        self.v, self.w = df.Variable(1.0), df.Variable(2.0)
        self.noise = df.random.Generator.from_seed(7)
        self.log = []

    def state(self):
        return float(self.v), float(self.w), self.log

    def run(self, program):
        for step in program:
            getattr(self, step)() if isinstance(step, str) else self.structured(*step)
        return self.v.read_value()

    def structured(self, kind, first, second):
        if kind == "if":
            df.cond(self.v > self.w, lambda: self.run(first), lambda: self.run(second))
        else:
            df.while_loop(lambda i: i < first, lambda i: self.iteration(i, second), [df.constant(0)])

    def iteration(self, i, program):
        self.run(program)
        return [i + 1]

    def add(self):
        self.v.assign_add(1.5)

    def copy(self):
        self.w.assign(self.v)

    def swap(self):
        before = self.v * 1.0
        self.v.assign(self.w)
        self.w.assign(before)

    def draw(self):
        self.v.assign(self.noise.uniform([]))

    def print(self):
        df.print(self.v, self.w, output_stream=self.log.append)

    def python(self):
        df.py_function(lambda x, y: self.log.append((float(x), float(y))), [self.v, self.w], None)


@settings(max_examples=60, deadline=None)
@given(PROGRAMS)
def test_a_compiled_program_does_what_the_eager_one_does(program):
    eager, compiled = World(), World()
    f = df.function(lambda: compiled.run(program))
    for _ in range(2):
        assert float(eager.run(program)) == float(f())
        assert eager.state() == compiled.state()


@pytest.mark.parametrize("compiled", [False, True])
def test_an_error_ends_the_program_at_its_place(compiled):
    log = []

    def program(x):
        df.print("before", output_stream=log.append)
        y = df.py_function(refuse, [x], df.float32)
        df.print("after", output_stream=log.append)
        return y

    with pytest.raises(KeyError):
        (df.function(program) if compiled else program)(df.constant(1.0))
    assert log == ["before\n"]


def refuse(x):
    raise KeyError("no")


@pytest.mark.parametrize("compiled", [False, True])
def test_statements_after_an_error_do_not_run(compiled):
    v, w = df.Variable(1.0), df.Variable([1.0, 1.0])

    def program(x):
        y = df.py_function(refuse, [x], df.float32)
        v.assign_add(1.0)
        w.assign(w * 2.0 + y)
        return y

    f = df.function(program) if compiled else program
    for _ in range(3):
        with pytest.raises(KeyError):
            f(df.constant(1.0))
    assert (float(v), w.numpy().tolist()) == (1.0, [1.0, 1.0])


def test_effects_of_a_nested_function_are_ordered_by_its_call():
    log = []
    inner = df.function(lambda text: df.print(text, output_stream=log.append))

    @df.function
    def outer(x):
        df.print("first", output_stream=log.append)
        inner("second")
        df.print("third", output_stream=log.append)
        return x

    outer(df.constant(1.0)), outer(df.constant(1.0))
    assert log == ["first\n", "second\n", "third\n"] * 2


def test_an_effect_whose_result_nothing_reads_happens():
    v, log = df.Variable(0.0), []

    @df.function
    def f(x):
        df.py_function(lambda y: log.append(float(y)), [x], None)
        df.random.normal([])
        v.assign_add(x)

    assert f(df.constant(2.0)) is None
    assert (log, float(v)) == ([2.0], 2.0)


def test_only_the_chosen_branch_has_effects():
    log = []

    @df.function
    def f(x):
        def say(text):
            df.print(text, output_stream=log.append)
            return x

        return df.cond(x > 0.0, lambda: say("yes"), lambda: say("no"))

    f(df.constant(1.0)), f(df.constant(-1.0))
    assert log == ["yes\n", "no\n"]


def test_a_loop_without_iterations_has_no_effects():
    v = df.Variable(1.0)
    f = df.function(
        lambda n: df.while_loop(lambda i: i < n, lambda i: [i + int(v.assign_add(1.0) is v)], [0])[0]
    )
    assert (int(f(df.constant(0))), float(v)) == (0, 1.0)
    assert (int(f(df.constant(3))), float(v)) == (3, 4.0)


def test_arrays_of_tensors_are_written_in_the_order_of_the_program():
    @df.function
    def f(n):
        def iteration(i, rows):
            rows = rows.write(i, df.cast(i, df.float32))
            rows = rows.write(0, rows.read(0) * 0.0 + df.cast(i, df.float32) * 10.0)
            return i + 1, rows

        rows = df.TensorArray(df.float32, 4, element_shape=[], clear_after_read=False)
        return df.while_loop(lambda i, rows: i < n, iteration, [df.constant(0), rows])[1].stack()

    assert f(df.constant(3)).numpy().tolist() == [20.0, 1.0, 2.0, 0.0]
