"""Tracing runs a function's Python once, however its tensors meet Python's control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import dualflow as df

ran: list[str] = []
limit = df.Variable(3.0)
bound = df.constant(3.0)


def absolute(x):
    ran.append("absolute")
    if x > 0.0:
        return x
    return -x


class Absolute:
    def __call__(self, x):
        return absolute(x)


class Model(df.Module):
    """Layers of which tracing learns the kind only when it calls them."""

    def __init__(self):
        self.layers = [Absolute()]
        self.named: dict[str, Any] = {"last": Absolute()}
        self.total = df.Variable(0.0)

    def value(self):
        return self.total

    @property
    def is_small(self):
        return self.total < 4.0

    def last(self, x):
        return self.named["last"](x)

    def looked_up(self, x):
        return getattr(self, "last")(x)  # noqa: B009  the name may come from anywhere

    def grow(self, x):
        while self.value() < 4.0:
            ran.append("grow")
            self.total.assign_add(x)
        return self.total + 0.0

    def shrink(self, x):
        if self.is_small:
            x = x / 2.0
        return x


class Wide(Model):
    def last(self, x):
        return super().last(x) + 1.0


model = Model()


def over_a_range(x):
    for _ in df.range(3):
        ran.append("body")
        x = x + 1.0
    return x


def nested_loops(x):
    for _ in df.range(3):
        for _ in df.range(2):
            ran.append("body")
            x = x + 1.0
    return x


def forever(x):
    while df.constant(True):
        ran.append("body")
        x = x + 1.0
        if x > 5.0:
            break
    return x


def of_a_variable(x):
    return x if limit > 2.0 else -x


def of_a_captured_tensor(x):
    return x if bound > 2.0 else -x


def of_a_callee(x):
    return absolute(x) + absolute(x)


def of_what_a_callee_returns(x):
    def positive():
        return limit > 0.0

    return x if positive() else -x


def of_an_inner_function(x):
    def choose(y):
        ran.append("choose")
        return y if y > 0.0 else -y

    return df.cond(x > 0.0, lambda: choose(x), lambda: x)


def of_layers(x):
    for layer in model.layers:
        x = layer(x)
    return x


def as_a_number(x):
    return int(x) + 1


def as_an_extreme(x):
    return max(x, 3.0)


def taken_apart(x):
    a, b = df.stack([x, x])
    return a + b


def of_a_list(x):
    return any([x > 1.0, x < 0.0])


def of_a_default(x, test=absolute):
    return test(x)


def over_rows(x):
    def body(row):
        ran.append("body")
        return row * x

    return df.map_fn(body, df.ones([4]))


def over_many_rows(x):
    def body(row):
        ran.append("body")
        return absolute(row) * x

    return df.map_fn(body, df.ones([40]))


def accumulated(x):
    def body(total, row):
        ran.append("body")
        return total + row * x

    return df.scan(body, df.ones([4])), df.foldl(body, df.ones([4]))


def matched(x):
    match x:
        case 1.0:
            return x
        case _:
            return -x


PROGRAMS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "for over a range": (over_a_range, ["body"]),
    "for in for": (nested_loops, ["body"]),
    "while over a constant": (forever, ["body"]),
    "a variable": (of_a_variable, []),
    "a captured tensor": (of_a_captured_tensor, []),
    "a callee": (of_a_callee, ["absolute"] * 2),
    "what a callee returns": (of_what_a_callee_returns, []),
    "an inner function": (of_an_inner_function, ["choose"]),
    "layers in a list": (of_layers, ["absolute"]),
    "a layer in a dict": (model.last, ["absolute"]),
    "a method by its name": (model.looked_up, ["absolute"]),
    "a base class's method": (Wide().last, ["absolute"]),
    "a method's result": (Model().grow, ["grow"]),
    "a property": (Model().shrink, []),
    "an object that is called": (Absolute(), ["absolute"]),
    "int": (as_a_number, []),
    "max": (as_an_extreme, []),
    "unpacking": (taken_apart, []),
    "any": (of_a_list, []),
    "a function as a default": (of_a_default, ["absolute"]),
    "match": (matched, []),
    "few rows": (over_rows, ["body"]),
    "many rows": (over_many_rows, ["body", "absolute"]),
    "scan and foldl": (accumulated, ["body"] * 2),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_python_runs_once_in_a_trace(case: str) -> None:
    program, expected = PROGRAMS[case]

    def first(x):
        ran.append("first")
        return program(x)

    ran.clear()
    df.function(first)(df.constant(2.0))
    assert ran == ["first", *expected]


def test_functions_among_the_arguments_are_followed() -> None:
    @df.function
    def apply(function, options, x):
        ran.append("first")
        return options["then"](function(x))

    ran.clear()
    apply(absolute, {"then": Absolute()}, df.constant(2.0))
    assert ran == ["first", "absolute", "absolute"]


def test_a_call_again_runs_no_python() -> None:
    f = df.function(over_a_range)
    f(df.constant(2.0))
    ran.clear()
    f(df.constant(3.0))
    assert ran == []


class Holder:
    """What a function reads from an object, while nothing of it is run."""

    asked: ClassVar[list[str]] = []

    @property
    def rate(self):
        self.asked.append("rate")
        return 2.0


def test_looking_ahead_runs_no_code_of_the_users() -> None:
    holder = Holder()

    @df.function
    def scaled(x):
        return x * holder.rate if x.shape.rank == 0 else x

    scaled(df.constant(2.0))
    assert holder.asked == ["rate"]


def test_rows_whose_sizes_depend_on_their_values_are_traced_one_by_one() -> None:
    @df.function
    def sums():
        return df.map_fn(lambda n: df.reduce_sum(df.range(n)), df.constant([1, 3, 4]))

    assert sums().numpy().tolist() == [0, 3, 6]


def test_a_custom_gradient_of_few_rows_reads_its_own_tensors() -> None:
    @df.custom_gradient
    def square(x):
        return x * x, lambda dy: 10.0 * x * dy

    @df.function
    def slopes(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.map_fn(square, x)
        return tape.gradient(y, x)

    assert slopes(df.constant([1.0, 2.0])).numpy().tolist() == [10.0, 20.0]


def test_few_rows_assign_variables_in_order() -> None:
    total = df.Variable(0.0)

    @df.function
    def running(x):
        def body(row):
            total.assign_add(row)
            return total * 1.0

        return df.map_fn(body, x)

    assert running(df.constant([1.0, 2.0, 3.0])).numpy().tolist() == [1.0, 3.0, 6.0]
    assert total.numpy() == 6.0
