"""Traced methods, and when functions, graphs and tensors are freed."""

from __future__ import annotations

import functools
import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import dualflow as df


class Model:
    def __init__(self, w):
        self.w = df.Variable(w)

    @df.function
    def __call__(self, x, scale=1.0):
        """Doc of the call."""
        return x * self.w * scale

    @df.function
    def bump(self):
        self.w.assign_add(1.0)


def test_each_instance_has_traces_of_its_own():
    a, b = Model(2.0), Model(3.0)
    x = df.constant(1.0)
    assert [float(m(x)) for m in (a, b, a)] == [2.0, 3.0, 2.0]
    assert a.__call__.experimental_get_tracing_count() == 1
    a.bump()
    assert (float(a.w), float(b.w)) == (3.0, 3.0)


def test_a_method_of_a_temporary_can_be_called():
    assert float(Model(5.0)(df.constant(2.0))) == 10.0


def test_a_method_through_the_class_is_the_function():
    assert isinstance(Model.__call__, df.function(len).__class__)
    assert float(Model.__call__(Model(2.0), df.constant(3.0))) == 6.0


def test_an_instance_is_freed_with_its_traces():
    model = Model(2.0)
    model(df.constant(1.0))
    variable, instance = weakref.ref(model.w), weakref.ref(model)
    del model
    gc.collect()
    assert instance() is None
    assert variable() is None


def test_an_instance_without_weak_references_is_refused():
    class Slotted:
        __slots__ = ()

        @df.function
        def f(self):
            return df.constant(1)

    with pytest.raises(TypeError, match="__weakref__"):
        Slotted().f()


def test_a_dropped_function_is_freed_with_what_it_captured():
    def used():
        big = df.constant(np.ones(1000, np.float32))
        f = df.function(lambda x: x + big)
        f(df.constant(1.0))
        with df.GradientTape() as tape:
            tape.watch(big)
            f(df.constant(1.0))
        return weakref.ref(big), weakref.ref(f)

    captured, function = used()
    gc.collect()
    assert function() is None
    assert captured() is None


def test_a_trace_goes_with_the_object_it_was_made_for():
    class Config:
        rate = 2.0

    f = df.function(lambda x, c: x * c.rate)
    config = Config()
    f(df.constant(1.0), config)
    assert f.cache_info().currsize == 1
    del config
    gc.collect()
    assert f.cache_info().currsize == 0


def growth(step, count):
    """The bytes by which ``count`` steps grow the memory that earlier steps have already used."""
    for _ in range(count // 2):
        step()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(count // 2):
            step()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(count):
            step()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_many_calls_take_no_memory():
    v = df.Variable(np.zeros(10, np.float32))
    f = df.function(lambda x: v.assign_add(x) * 2.0)
    x = df.constant(np.ones(10, np.float32))
    assert growth(lambda: f(x), 2000) < 10_000


def test_many_gradients_take_no_memory():
    f = df.function(lambda x: df.reduce_sum(df.exp(x) * x))
    x = df.constant(np.ones(10, np.float32))

    def step():
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        tape.gradient(y, x)

    assert growth(step, 500) < 10_000


def test_the_function_looks_like_what_it_wraps():
    @df.function
    def documented(x):
        """What it does."""
        return x

    assert (documented.__name__, documented.__doc__) == ("documented", "What it does.")
    assert documented.__wrapped__ is documented.python_function
    assert Model(1.0).__call__.__doc__ == "Doc of the call."


def test_callables_of_every_kind_can_be_traced():
    class Adder:
        n = 2.0

        def __call__(self, x):
            return x + self.n

        def method(self, x):
            return x - self.n

    x = df.constant(5.0)
    partial = functools.partial(lambda a, b: a * b, b=3.0)
    assert [float(df.function(f)(x)) for f in (Adder(), Adder().method, partial, df.exp)][:3] == [
        7.0,
        3.0,
        15.0,
    ]
    assert float(df.function(df.function(Adder()))(x)) == 7.0


def test_functions_can_be_run_eagerly():
    modes = []

    @df.function
    def f(x):
        modes.append(df.executing_eagerly())
        return x

    df.config.run_functions_eagerly(True)
    try:
        assert df.config.functions_run_eagerly()
        f(df.constant(1.0)), f(df.constant(1.0))
    finally:
        df.config.run_functions_eagerly(False)
    f(df.constant(1.0))
    assert modes == [True, True, False]
