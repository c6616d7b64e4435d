"""Warnings point at the user's line, also in functions that were converted."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import dualflow as df
from dualflow.graph_mode.growth_warning import REPEATS

v1 = df.compat.v1


def watching(x: Any) -> None:
    with df.GradientTape() as tape:
        tape.watch(df.constant(1))  # here


def of_integers(x: Any) -> None:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.cast(x, df.int32)
    tape.gradient(y, x)  # here


def of_integers_by_name(x: Any) -> None:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.cast(x, df.int32)
    tape.gradient(target=y, sources=x)  # here


def in_a_branch(x: Any) -> Any:
    if x > 0.0:
        watching(x)
    return x


def retracing(x: Any) -> None:
    f = df.function(lambda n: x * n)
    for n in range(5):
        f(n)  # here


def growing(x: Any) -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        one = v1.placeholder(df.float32, [])
        for _ in range(2 + REPEATS):
            session.run(one + 1.0, {one: 1.0})  # here


def with_another_global(x: Any) -> None:
    rate = 1.0

    @df.function
    def f(x):
        return x * rate

    f(x)
    rate = 2.0
    f(df.ones([2]))  # here


def line_of(function: Callable[..., Any]) -> int:
    source, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(source) if line.endswith("# here\n"))


@pytest.mark.parametrize(
    ("program", "place"),
    [
        (watching, watching),
        (of_integers, of_integers),
        (of_integers_by_name, of_integers_by_name),
        (retracing, retracing),
        (growing, growing),
        (with_another_global, with_another_global),
        (df.function(watching), watching),
        (df.function(in_a_branch), watching),
    ],
)
def test_a_warning_points_at_the_line_that_led_to_it(program: Any, place: Callable[..., Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program(df.constant(1.0))
    assert (caught[0].filename, caught[0].lineno) == (__file__, line_of(place))
