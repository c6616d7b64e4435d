"""Random failing programs: variables, output and random state after the failure equal eager ones."""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.ops.random_numbers import draws
from dualflow.ops.random_numbers.streams import Stream

_PLAIN = ["add", "split_forward_backward", "swap", "count", "again", "gather", "scatter", "check"]
STEPS = st.sampled_from([*_PLAIN, "draw", "roll", "print", "python"])
PROGRAMS = st.lists(
    st.recursive(
        STEPS,
        lambda inner: (
            st.tuples(st.just("if"), st.lists(inner, max_size=3), st.lists(inner, max_size=3))
            | st.tuples(st.just("repeat"), st.integers(1, 4), st.lists(inner, min_size=1, max_size=3))
            | st.tuples(st.just("call"), st.just(0), st.lists(inner, min_size=1, max_size=3))
        ),
        max_leaves=6,
    ),
    min_size=1,
    max_size=6,
)
LIMIT = 4
"""From this count on, whatever can fail does."""


class World:
    """All that a program can change. What may fail is computed for sums, which no later step overwrites."""

    def __init__(self, compiled):
        self.v = df.Variable([1.0, 2.0, 3.0, 4.0])
        self.w = df.Variable([0.5, 0.25, -1.0, 2.0])
        self.rows = df.Variable(np.zeros((LIMIT, 2), np.float32))
        self.n, self.total = df.Variable(0), df.Variable(0.0)
        self.noise = Stream([7])
        self.generator = df.random.Generator.from_seed(7)
        self.log = []
        self.compiled = compiled

    def state(self):
        held = np.concatenate([np.ravel(x) for x in (self.v, self.w, self.rows, self.n, self.total)])
        drawn = str(self.noise.philox.bit_generator.state), self.generator.state.numpy().tolist()
        return held, list(map(str, self.log)), drawn

    def outcome(self, call):
        try:
            call()
        except Exception as error:
            return type(error)
        return None

    def run(self, program):
        for step in program:
            getattr(self, step)() if isinstance(step, str) else self.structured(*step)
        return self.v.read_value()

    def structured(self, kind, first, second):
        if kind == "if":
            df.cond(self.n % 2 == 0, lambda: self.run(first), lambda: self.run(second))
        elif kind == "call":
            (df.function(self.run) if self.compiled else self.run)(second)
        else:
            df.while_loop(lambda i: i < first, lambda i: self.iteration(i, second), [df.constant(0)])

    def iteration(self, i, program):
        self.run(program)
        return [i + 1]

    def add(self):
        self.v.assign_add(self.w)

    def split_forward_backward(self):
        self.w.assign(self.w * 0.5)

    def swap(self):
        before = self.v.value()
        self.v.assign(self.w)
        self.w.assign(before)

    def count(self):
        self.n.assign_add(1)

    def again(self):
        self.n.assign(self.n % LIMIT)

    def gather(self):
        self.total.assign_add(df.reduce_sum(df.gather(self.w, [0, self.n])))

    def scatter(self):
        self.rows.scatter_nd_add([[0], [self.n]], df.stack([self.v[:2], self.w[2:]]))

    def check(self):
        if self.n >= LIMIT:
            raise OverflowError(f"{int(self.n)}")

    def draw(self):
        self.w.assign(draws.uniform(self.noise, [4]))

    def roll(self):
        self.w.assign(self.generator.uniform([4]))

    def print(self):
        df.print(self.n, output_stream=self.log.append)

    def python(self):
        self.n.assign(df.py_function(self.heard, [self.n], df.int32))

    def heard(self, n):
        self.log.append(int(n))
        if n >= LIMIT:
            raise KeyError("no")
        return n + 1


@settings(max_examples=settings.default.max_examples * 3, deadline=None)
@given(PROGRAMS, st.integers(0, LIMIT))
def test_a_program_leaves_compiled_what_it_leaves_eager(program, count):
    eager, compiled = World(False), World(True)
    f = df.function(compiled.run)
    for world in (eager, compiled):
        world.n.assign(count)
    for _ in range(4):
        expected = eager.outcome(partial(eager.run, program))
        assert compiled.outcome(partial(f, program)) is expected
        numbers, log, drawn = eager.state()
        state, logged, noise = compiled.state()
        np.testing.assert_allclose(state, numbers, rtol=1e-5, atol=1e-5)
        assert (logged, noise) == (log, drawn)
