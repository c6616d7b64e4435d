"""Copy on write: a variable's value that is still referenced doesn't change, updates go to a copy.

Updates happen in the variable's own buffer where reference counts show that it isn't shared, and versions of
Python differ in which references they count: a call's arguments, locals that are on the stack.
"""

from __future__ import annotations

import functools
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.function.calls import c_call

ITERATIONS = 40  # enough for the interpreter to specialise what runs often
Update = Callable[[], Any]
Read = Callable[[], Any]


def a_local(read: Read, update: Update) -> Any:
    held = read()
    update()
    return held


def the_evaluation_stack(read: Read, update: Update) -> Any:
    return (read(), update())[0]


def a_local_that_is_deleted_while_it_is_on_the_stack(read: Read, update: Update) -> Any:
    held = read()
    return (held, (held := update()))[0]


def the_argument_of_a_running_call(read: Read, update: Update) -> Any:
    def run(held: Any) -> Any:
        update()
        return held

    return run(read())


def a_local_passed_down(read: Read, update: Update) -> Any:
    def inner(variable: Any) -> Any:
        update()
        return variable

    def outer(variable: Any) -> Any:
        return inner(variable)

    held = read()
    return outer(held)


def starred_arguments(read: Read, update: Update) -> Any:
    def run(*held: Any, **more: Any) -> Any:
        update()
        return held[0]

    return run(read(), more=1)


def a_closure(read: Read, update: Update) -> Any:
    held = read()

    def look() -> Any:
        return held

    update()
    return look()


def a_default(read: Read, update: Update) -> Any:
    def look(held: Any = None) -> Any:
        return held

    look.__defaults__ = (read(),)
    update()
    return look()


def a_suspended_generator(read: Read, update: Update) -> Any:
    def values() -> Iterator[Any]:
        held = read()
        yield None
        yield held

    waiting = values()
    next(waiting)
    update()
    return next(waiting)


def a_suspended_expression(read: Read, update: Update) -> Any:
    def values() -> Iterator[Any]:
        yield (read(), (yield None))[0]

    waiting = values()
    next(waiting)
    update()
    return next(waiting)


def a_coroutine(read: Read, update: Update) -> Any:
    @types.coroutine
    def pause() -> Iterator[None]:
        yield

    async def keep() -> Any:
        held = read()
        await pause()
        return held

    running = keep()
    running.send(None)
    update()
    with pytest.raises(StopIteration) as ended:
        running.send(None)
    return ended.value.value


def a_loop_variable(read: Read, update: Update) -> Any:
    for held in (read(),):
        update()
        return held
    raise AssertionError("the loop has an iteration")


def a_comprehension(read: Read, update: Update) -> Any:
    return next(iter([held for held in [read()] if update() is not held]))


def the_frame_of_an_exception(read: Read, update: Update) -> Any:
    def fail() -> None:
        held = read()
        raise ValueError(held.shape)

    try:
        fail()
    except ValueError as error:
        kept = error
    update()
    innermost = list(traceback.walk_tb(kept.__traceback__))[-1][0]
    return innermost.f_locals["held"]


def a_partial(read: Read, update: Update) -> Any:
    held = functools.partial(lambda x: x, read())
    update()
    return held()


def an_attribute(read: Read, update: Update) -> Any:
    box = types.SimpleNamespace(held=read())
    update()
    return box.held


HOLDERS = [
    a_local,
    the_evaluation_stack,
    a_local_that_is_deleted_while_it_is_on_the_stack,
    the_argument_of_a_running_call,
    a_local_passed_down,
    starred_arguments,
    a_closure,
    a_default,
    a_suspended_generator,
    a_suspended_expression,
    a_coroutine,
    a_loop_variable,
    a_comprehension,
    the_frame_of_an_exception,
    a_partial,
    an_attribute,
]
READS: dict[str, Callable[[df.Variable], Any]] = {
    "tensor": lambda v: v.value(),
    "array": lambda v: v.numpy(),
    "view": lambda v: v.numpy()[1:],
    "memoryview": lambda v: memoryview(v.numpy()),
}


@pytest.fixture(params=["C fast call", "slow path", "checked call"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The argument of calls that take the path of this name."""
    if request.param == "checked call":
        monkeypatch.setattr(c_call, "probe", lambda tensor_class: None)
    return np.ones(3, np.float32) if request.param == "slow path" else df.ones([3])


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("holder", HOLDERS)
def test_values_that_were_read_stay(
    holder: Callable[[Read, Update], Any], read: Callable[..., Any], by: Any
) -> None:
    v = df.Variable(df.zeros([3]))
    add = df.function(lambda x: v.assign_add(x) is None)
    for iteration in range(ITERATIONS):
        held = holder(lambda: read(v), lambda: add(by))
        assert (np.asarray(held) == iteration).all()
        assert (v.numpy() == iteration + 1).all()
        del held


@pytest.mark.llvm  # Numba's programs write a new value, which the variable then takes
def test_unreferenced_values_are_updated_in_place(by: Any) -> None:
    v = df.Variable(df.zeros([3]))
    add = df.function(lambda x: v.assign_add(x) is None)
    add(by), add(by)
    address = v.numpy().ctypes.data
    for _ in range(ITERATIONS):
        add(by)
        assert v.numpy().ctypes.data == address
