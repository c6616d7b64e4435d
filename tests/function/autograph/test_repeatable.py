"""Repeatable functions, whose second run has no effects: what makes a function one, or not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.function.autograph.repeatable import is_repeatable

WEIGHTS = [df.Variable([[1.0]]), df.Variable([2.0])]
SETTINGS: dict[str, Any] = {"rate": 0.1, "names": ("a", None)}
TABLE = np.arange(3.0)
LOG: list[Any] = []
LATEST: Any = None
NUMBERS = iter([1.0, 2.0])


class Model:
    def __call__(self, x: Any) -> Any:
        return x


MODEL = Model()
TRACED = df.function(lambda x: x)


def step(x: Any, y: Any = 1.0) -> Any:
    with df.GradientTape() as tape:
        for i in range(0, len(WEIGHTS), 2):
            x = df.nn.relu(df.matmul(x, WEIGHTS[i]) + WEIGHTS[i + 1])
        loss = df.reduce_mean((x - y) ** 2) * SETTINGS["rate"]
    for variable, gradient in zip(WEIGHTS, tape.gradient(loss, WEIGHTS), strict=True):
        variable.assign_sub(SETTINGS["rate"] * gradient)
    return loss


def own_list(x: Any) -> Any:
    terms = [x * float(i) for i in range(3)]
    terms.append(x)
    return df.stack(terms), {"sum": sum(terms), "square": (lambda z: z * z)(x)}


def sized(x: Any) -> Any:
    return x / x.shape[0] if x.shape[0] > 1 else -x


def calls_another(x: Any) -> Any:
    return sized(x) + df.cast(TABLE[0], x.dtype)


def recursive(x: Any, *, n: int = 2) -> Any:
    return recursive(x, n=n - 1) * 2.0 if n else x


@pytest.mark.parametrize(
    "function", [step, own_list, sized, calls_another, recursive, lambda x: df.math.exp(x) + 1.0]
)
def test_functions_of_ops_are_repeatable(function: Callable[..., Any]) -> None:
    assert is_repeatable(function)


def prints(x: Any) -> Any:
    print(x)
    return x


def appends(x: Any) -> Any:
    LOG.append(x)
    return x


def extends_an_alias(x: Any) -> Any:
    log = LOG
    log += [x]
    return x


def assigns_an_item(x: Any) -> Any:
    SETTINGS["latest"] = x
    return x


def assigns_an_attribute(x: Any) -> Any:
    x.label = True
    return x


def assigns_a_global(x: Any) -> Any:
    global LATEST
    LATEST = x
    return x


def calls_an_object(x: Any) -> Any:
    return MODEL(x)


def calls_a_traced_function(x: Any) -> Any:
    return TRACED(x)


def draws(x: Any) -> Any:
    return x + random.random()


def draws_by_numpy(x: Any) -> Any:
    return x + np.random.rand()


def reads_the_time(x: Any) -> Any:
    return x + time.time()


def advances_an_iterator(x: Any) -> Any:
    return x * sum(number for number in NUMBERS)


def creates_a_variable(x: Any) -> Any:
    return df.Variable(1.0) + x


def raises(x: Any) -> Any:
    raise ValueError(x)


def calls_a_noisy_function(x: Any) -> Any:
    return prints(x)


def shadows_a_module(x: Any) -> Any:
    return np.exp(1.0) * (lambda np: x)(1)


def opens(x: Any) -> Any:
    with open("file", "w"):
        return x


def unknown(x: Any) -> Any:
    return no_such_name(x)  # type: ignore[name-defined]  # noqa: F821


class Counting(list[Any]):
    def __getitem__(self, key: Any) -> Any:
        LOG.append(key)
        return 1.0


COUNTING = Counting()
NEXT = NUMBERS.__next__


def append_to(values: list[Any], x: Any) -> Any:
    values.append(x)
    return x


def add_to(values: Any, x: Any) -> Any:
    values += [1]
    return x


def returns_the_log() -> Any:
    return LOG


def passes_the_log(x: Any) -> Any:
    return append_to(LOG, x)


def passes_an_array(x: Any) -> Any:
    return add_to(TABLE, x)


def appends_to_a_returned_list(x: Any) -> Any:
    append_to(returns_the_log(), x)
    return x


def reads_a_subclass(x: Any) -> Any:
    return x * COUNTING[0]


def calls_a_method_of_an_iterator(x: Any) -> Any:
    return x * NEXT()


class Loud(df.Variable):
    def __mul__(self, other: Any) -> Any:
        print(other)
        return other


LOUD = Loud(1.0)


def reads_a_variable_of_the_user(x: Any) -> Any:
    return LOUD * x


NOTED = df.Variable(1.0)
NOTED.log = []  # type: ignore[attr-defined]  # of the user


def calls_a_special_method(x: Any) -> Any:
    SETTINGS.__setitem__("latest", x)
    return x


def appends_to_an_attribute(x: Any) -> Any:
    NOTED.log.append(x)  # type: ignore[attr-defined]  # of the user
    return x


def reads_the_type_of_a_size(x: Any) -> Any:
    return -x if type(x.shape[0]) is int else x


def writes_a_result_by_keyword(x: Any) -> Any:
    TABLE.cumsum(out=TABLE)
    return x


def writes_a_result_by_position(x: Any) -> Any:
    np.multiply(TABLE, 2.0, TABLE)
    return x


def closed_over(values: list[Any]) -> Callable[[Any], Any]:
    def inner(x: Any) -> Any:
        return sum(values) * x

    return inner


QUIET, NOISY = closed_over([1.0]), closed_over([prints])


def calls_two_closures_of_one_code(x: Any) -> Any:
    return QUIET(x) + NOISY(x)


NOTICED = [
    *(passes_the_log, passes_an_array, appends_to_a_returned_list, reads_a_subclass),
    *(calls_a_special_method, appends_to_an_attribute, reads_the_type_of_a_size),
    *(calls_a_method_of_an_iterator, reads_a_variable_of_the_user, calls_two_closures_of_one_code),
    *(writes_a_result_by_keyword, writes_a_result_by_position),
    *(prints, appends, extends_an_alias, assigns_an_item, assigns_an_attribute, assigns_a_global),
    *(calls_an_object, calls_a_traced_function, draws, draws_by_numpy, reads_the_time, advances_an_iterator),
    *(
        creates_a_variable,
        raises,
        calls_a_noisy_function,
        shadows_a_module,
        opens,
        unknown,
        MODEL,
        Model().__call__,
    ),
    *(eval("lambda x: x"), print, df.exp),
]


@pytest.mark.parametrize("function", NOTICED)
def test_functions_with_effects_or_unknown_callees_are_not(function: Callable[..., Any]) -> None:
    assert not is_repeatable(function)


def test_what_a_name_refers_to_is_examined_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_repeatable(calls_another)
    monkeypatch.setitem(globals(), "sized", prints)
    assert not is_repeatable(calls_another)
