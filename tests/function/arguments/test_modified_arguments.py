"""A traced function that modifies its arguments in place is refused: its caller would not see it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import dualflow as df

X = df.constant(1.0)


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


def put(d: Any) -> Any:
    d["new"] = d["x"]


def replace(d: Any) -> Any:
    d["x"] = d["x"] + 1.0


def pop(d: Any) -> Any:
    return d.pop("x")


def append(values: Any) -> Any:
    values.append(3)


def append_itself(values: Any) -> Any:
    values.append(values)


def sort(values: Any) -> Any:
    values.sort(reverse=True)


def add_in_place(values: Any) -> Any:
    values[0] += 1.0


def deep(d: Any) -> Any:
    d["x"][0]["y"] = d["x"][0]["y"] * 2.0


def of_object(pair: Any) -> Any:
    pair.left = pair.right


def of_many(*args: Any) -> Any:
    args[1].clear()


def of_named(**kwargs: Any) -> Any:
    kwargs["d"]["x"] = 1


def in_a_loop(values: Any) -> Any:
    for x in list(values):
        values.append(x)


CHANGES: list[tuple[Callable[..., Any], Callable[[], tuple[list[Any], dict[str, Any]]], str]] = [
    (put, lambda: ([{"x": X}], {}), "d"),
    (replace, lambda: ([{"x": X}], {}), "d"),
    (replace, lambda: ([collections.OrderedDict(x=X)], {}), "d"),
    (replace, lambda: ([], {"d": {"x": X}}), "d"),
    (pop, lambda: ([{"x": X}], {}), "d"),
    (append, lambda: ([[1, 2]], {}), "values"),
    (append_itself, lambda: ([[X]], {}), "values"),
    (sort, lambda: ([[1, 2]], {}), "values"),
    (add_in_place, lambda: ([[X]], {}), "values"),
    (deep, lambda: ([{"x": [{"y": X}]}], {}), "d"),
    (of_object, lambda: ([Pair(X, X + 1.0)], {}), "pair"),
    (of_many, lambda: ([X, [X]], {}), "args"),
    (of_named, lambda: ([], {"d": {"x": X}}), "kwargs"),
    (in_a_loop, lambda: ([[X]], {}), "values"),
]


@pytest.mark.parametrize(("change", "arguments", "name"), CHANGES)
def test_it_is_refused_and_the_arguments_stay(change, arguments, name):
    args, kwargs = arguments()
    f = df.function(change)
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"should not modify .* modified: {name}\."):
            f(*args, **kwargs)
    assert repr((args, kwargs)) == repr(arguments())


def test_a_default_value_that_is_changed_is_refused():
    @df.function
    def f(x, calls=[]):  # noqa: B006  the fault that is reported
        calls.append(x)
        return x

    with pytest.raises(ValueError, match="modified: calls"):
        f(X)


def test_all_changed_arguments_are_named():
    @df.function
    def f(a, b, c):
        a.append(b)
        c.pop()

    with pytest.raises(ValueError, match="modified: a, c"):
        f([X], X, [X])


def test_copies_and_changes_that_are_undone_are_fine():
    @df.function
    def f(d, values, **options):
        d["x"] = d["x"]
        values.append(values.pop())
        options["more"] = d["x"]
        own = {**d, "y": 1.0}
        own["x"] = own["x"] + 1.0
        return own["x"]

    assert f({"x": X}, [X, X], other=X).numpy() == 2.0


def test_objects_without_structure_are_the_callers_own():
    class Log:
        def __init__(self):
            self.lines = []

    log = Log()

    @df.function
    def f(x, log):
        log.lines.append("traced")
        return x

    f(X, log)
    assert log.lines == ["traced"]
