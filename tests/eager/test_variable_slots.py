"""The atomic steps that change a variable's slots."""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualflow.eager import variable_slots
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.eager.variable_slots import (
    GIL,
    pop_lock,
    push_lock,
    put_back,
    replace,
    slot_content,
    store,
    substitute,
    take,
)

STEPS = [store, replace, take, push_lock, pop_lock, put_back, slot_content, substitute]
SWITCHES = ("CALL", "PRECALL", "JUMP_BACKWARD", "FOR_ITER", "SEND", "YIELD", "IMPORT", "WITH", "BEFORE_WITH")
"""How the names of instructions begin at which CPython may switch threads, or which call Python code."""

needs_the_gil = pytest.mark.skipif(not GIL, reason="these steps do nothing without a GIL")


class Slots:
    """A variable's slots alone."""

    __slots__ = ("_borrower", "_substitute", "_tensor")


class Lock:
    """A stand-in for a tensor."""

    def __init__(self) -> None:
        self.tensor = tensor()


def tensor() -> EagerTensor:
    return wrap(np.zeros(2, np.float32))


def holding(value: EagerTensor) -> Any:
    slots: Any = Slots()
    slots._tensor = value
    return slots


@pytest.mark.parametrize("step", STEPS)
def test_threads_cannot_switch_within_a_step(step: Callable[..., Any]) -> None:
    names = [instruction.opname for instruction in dis.get_instructions(step)]
    accesses = [i for i, name in enumerate(names) if name in ("LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR")]
    within = names[accesses[0] : accesses[-1]]
    assert [name for name in within if name.startswith(SWITCHES)] == []


def test_every_step_is_tested() -> None:
    functions = {
        name
        for name, value in vars(variable_slots).items()
        if callable(value) and getattr(value, "__module__", "") == variable_slots.__name__
    }
    assert functions == {step.__name__ for step in STEPS} | {"Holder", "borrowed_here"}


@needs_the_gil
def test_a_present_tensor_is_replaced() -> None:
    before, after = tensor(), tensor()
    variable = holding(before)
    assert store(variable, after)
    assert slot_content(variable) is after


@needs_the_gil
def test_a_tensor_is_replaced_only_while_it_is_present() -> None:
    before, other, after = tensor(), tensor(), tensor()
    variable = holding(before)
    assert not replace(variable, other, after)
    assert slot_content(variable) is before
    assert replace(variable, before, after)
    assert slot_content(variable) is after


@pytest.mark.parametrize(
    "step", [lambda v, t: store(v, t), lambda v, t: replace(v, t, t), lambda v, t: take(v, Lock())]
)
def test_a_tensor_that_is_taken_is_not_replaced(step: Callable[[Any, EagerTensor], bool]) -> None:
    lock, value = Lock(), tensor()
    variable = holding(value)
    assert take(variable, lock)
    assert not step(variable, value)
    assert slot_content(variable) is substitute(variable) is lock
    assert lock.tensor is value


def test_a_lock_puts_its_tensor_back_once() -> None:
    lock, after = Lock(), tensor()
    variable = holding(tensor())
    take(variable, lock)
    lock.tensor = after
    assert put_back(variable, lock)
    assert slot_content(variable) is after
    assert substitute(variable) is None
    assert not put_back(variable, lock)


def test_only_the_lock_that_is_the_substitute_puts_the_tensor_back() -> None:
    lock = Lock()
    variable = holding(tensor())
    take(variable, lock)
    assert not put_back(variable, Lock())
    assert slot_content(variable) is lock


def test_a_nested_lock_hands_its_tensor_to_the_outer_one() -> None:
    outer, inner, before, after = Lock(), Lock(), tensor(), tensor()
    variable = holding(before)
    take(variable, outer)
    push_lock(variable, inner, outer)
    assert inner.tensor is before
    assert slot_content(variable) is inner
    inner.tensor = after
    pop_lock(variable, inner, outer)
    assert slot_content(variable) is outer
    assert outer.tensor is after


def test_a_lock_that_is_not_the_substitute_changes_nothing() -> None:
    outer, inner = Lock(), Lock()
    variable = holding(tensor())
    take(variable, outer)
    before = outer.tensor
    pop_lock(variable, inner, outer)
    assert outer.tensor is before
    assert slot_content(variable) is outer


def test_a_variable_without_a_value_has_nothing_present() -> None:
    assert slot_content(Slots()) is None
