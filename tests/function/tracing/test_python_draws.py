"""Random numbers of Python and NumPy, and clocks, that a trace keeps: warnings, and the report of verify."""

from __future__ import annotations

import datetime
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.function.errors import FrozenDrawWarning

OWN = np.random.default_rng(1)
OLD = np.random.RandomState(1)
PYTHON = random.Random(1)


def helper() -> float:
    return random.random()


DRAWS: dict[str, Callable[[], Any]] = {
    "np.random.rand": lambda: df.constant(np.random.rand()),
    "np.random.normal": lambda: df.ones([3]) * np.random.normal(size=3),
    "random.random": lambda: df.constant(random.random()),
    "random.randint": lambda: df.constant(random.randint(0, 1 << 30)),
    "random.gauss": lambda: df.constant(random.gauss(0.0, 1.0)),
    "OWN": lambda: df.constant(OWN.normal()),
    "OLD": lambda: df.constant(OLD.normal()),
    "PYTHON": lambda: df.constant(PYTHON.random()),
}
CLOCKS: dict[str, Callable[[], Any]] = {
    "time.time": lambda: df.constant(time.time()),
    "time.perf_counter": lambda: df.constant(time.perf_counter()),
    "datetime.datetime.now": lambda: df.constant(datetime.datetime.now().timestamp()),
}


def line_of(function: Callable[..., Any]) -> int:
    return function.__code__.co_firstlineno


def warned(call: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        call()
    return [w for w in shown if w.category is FrozenDrawWarning]


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_while_tracing_warns_once_at_its_line(name: str):
    function = df.function(DRAWS[name])
    shown = warned(lambda: (function(), function()))
    assert [(w.filename, w.lineno) for w in shown] == [(__file__, line_of(DRAWS[name]))]
    assert name in str(shown[0].message)
    assert "df.random" in str(shown[0].message)


def test_the_line_of_a_draw_in_a_called_function_is_its_own():
    shown = warned(lambda: df.function(lambda x: x * helper())(df.constant(1.0)))
    assert [w.lineno for w in shown] == [line_of(helper) + 1]


def test_further_traces_of_a_function_warn_no_more():
    f = df.function(lambda x: x * np.random.rand())
    assert len(warned(lambda: (f(df.ones([1])), f(df.ones([2]))))) == 1


def test_a_draw_in_a_function_inside_of_another_warns_once():
    inner = df.function(lambda x: x * np.random.rand())
    assert len(warned(lambda: df.function(lambda x: inner(x) + 1.0)(df.ones([1])))) == 1


def test_a_draw_that_calls_repeat_warns_of_nothing():
    """Eager code, Python functions that run at each call, and the first values of variables may draw."""

    class Layer:
        w: Any = None

        @df.function
        def __call__(self, x: Any) -> Any:
            if self.w is None:
                self.w = df.Variable(np.random.rand(2).astype(np.float32))
            return self.w * x

    f = df.function(lambda x: df.numpy_function(lambda v: v + np.random.rand(), [x], df.float32))
    assert warned(lambda: (f(df.ones([2])), Layer()(df.ones([2])), DRAWS["np.random.rand"]())) == []


@pytest.mark.parametrize("name", [*DRAWS, *CLOCKS])
def test_verify_names_what_the_trace_keeps(name: str):
    function = {**DRAWS, **CLOCKS}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = df.verify(df.function(function))
    assert not report.agrees
    assert name in str(report)
    assert f"line {line_of(function)}" in str(report)


def test_verify_agrees_with_what_each_call_draws():
    assert df.verify(lambda: df.numpy_function(lambda: np.float32(time.time() * 0), [], df.float32)).agrees
    assert df.verify(lambda: df.random.uniform([3])).agrees


def test_verify_leaves_the_generators_as_they_were():
    function = df.function(DRAWS["np.random.rand"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function()
        np.random.seed(3)
        df.verify(function)
    drawn = np.random.rand()
    np.random.seed(3)
    assert np.random.rand() == drawn


@pytest.mark.parametrize(
    ("traced", "count"),
    [
        ("np.random.rand()", 1),
        ("len(dir(np.random.Generator))", 0),
        ("__import__('random').random()", 1),
        ("len(dir(__import__('random')))", 0),
    ],
)
def test_a_draw_by_a_trace_that_loads_the_generators_is_noticed(traced: str, count: int):
    """NumPy loads them when they are first used; dualflow doesn't load Python's."""
    program = f"""
import warnings
import numpy as np
import dualflow as df
with warnings.catch_warnings(record=True) as shown:
    warnings.simplefilter("always")
    df.function(lambda: df.constant(1.0 * {traced}))()
assert len(shown) == {count}, shown
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_method_that_draws_warns_and_is_named():
    class Noise:
        def __init__(self) -> None:
            self.generator = np.random.default_rng(2)

        @df.function
        def add(self, x: Any) -> Any:
            return x + self.generator.normal()

    noise = Noise()
    line = line_of(Noise.add.python_function) + 2
    assert [w.lineno for w in warned(lambda: noise.add(df.constant(1.0)))] == [line]
    assert f'self.generator, File "{__file__}", line {line}' in str(df.verify(noise.add, df.constant(1.0)))
