"""Changes of variables: each is one step for all threads, and a tensor that was read never changes.

A tensor is an immutable snapshot. A change computes the new tensor beside the present one and replaces that,
if it is still the present one, in one step (``variable_slots.py``). Where this fails, and for changes of
several variables, threads take write locks, in the order in which they came: reads get the snapshot that a
lock holds, other changes wait.

While compiled code writes to a variable's buffer, a read takes hold of the tensor and waits for the end:
later compiled calls see that it is held and leave its buffer alone. Without a GIL no buffer is lent, and
every change takes a write lock.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from threading import Lock, get_ident
from typing import Any, Final

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.locks import SharedLock, held
from dualflow.eager.initial_values import DeferredInitialValue, decide, restore_initial
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.eager.variable_slots import (
    borrowed_here,
    nest,
    present,
    put_back,
    store,
    substitute,
    take,
    unnest,
)

_SHORTEST, _LONGEST = 2e-5, 1e-3
_FORK_WAITS: Final = 1.0
_lock: Final = SharedLock()


class WriteLock:
    """A thread's right to change a variable.

    Attributes:
        tensor: the variable's present tensor, and the one that it has when the lock is released.
        outer: the lock of the same thread that this one interrupts.
        thread: the thread.
        compiled: whether it is a compiled call's, which has read the variable and will write to it.
    """

    __slots__ = ("compiled", "outer", "tensor", "thread")
    tensor: EagerTensor

    def __init__(self, thread: int, compiled: bool) -> None:
        self.thread = thread
        self.compiled = compiled
        self.outer: WriteLock | None = None


class UpdateStep:
    """``with step.running, step as locks:`` is a block in which no other thread changes some variables.

    Reads get the tensor of a write lock, which may be replaced by one that no other object holds. Threads get
    their locks in the order in which they came. A step inside of a step of the same thread, say in a signal
    handler, does not wait.

    Args:
        variables: what to change, each once.
        compiled: whether a compiled call does, which would write over changes made by a step inside of it.

    Attributes:
        running: held during the step. Ctrl-C may keep ``__exit__`` from doing its work, but not this lock
            from being released; the next step does the rest.

    Raises:
        FailedPreconditionError: a variable has no value, a compiled call that changes it has called the
            Python code which asks, or another thread waits for this one and would be waited for.
    """

    __slots__ = ("_locks", "_running", "_seen", "_thread", "_variables", "_waits")

    def __init__(self, variables: Sequence[Any], *, compiled: bool = False) -> None:
        self._running = Lock()
        self._variables = tuple(variables)
        self._thread = get_ident()
        self._locks = [WriteLock(self._thread, compiled) for _ in variables]
        self._waits = True
        self._seen: list[Any] = []

    @property
    def running(self) -> AbstractContextManager[Any]:
        """What to hold during the step."""
        return held(self._running)

    def __enter__(self) -> list[WriteLock]:
        decide(self._variables)
        with _lock.lock:
            _steps.append(self)
        for pause in _pauses():
            if self._take():
                break
            time.sleep(pause)
        return self._locks

    def __exit__(self, *exc: object) -> None:
        self.end()

    def end(self) -> None:
        """Give the variables the tensors of their locks, which end."""
        with _lock.lock:
            self._give_back()
            if self in _steps:
                _steps.remove(self)
            self._seen = []

    def left(self) -> bool:
        """Whether this process was forked, and the step's thread is in another one."""
        return self._thread != get_ident()

    def _take(self) -> bool:
        with _lock.lock:
            for step in [step for step in _steps if not step._running.locked()]:
                step.end()
            # Compiled code leaves a tensor alone that is held here, so this step's turn comes.
            self._seen = [present(v) for v in self._variables]
            if not self._is_next():
                return False
            for variable, lock in zip(self._variables, self._locks, strict=True):
                if not _acquire(variable, lock):
                    self._give_back()
                    self._refuse_a_circle(substitute(variable))
                    return False
            self._seen, self._waits = [], False
            return True

    def _is_next(self) -> bool:
        """Whether no other thread came earlier for one of the variables, but those that wait for this one."""
        outer = [step for step in _steps if step is not self and step._thread == self._thread]
        for step in _steps:
            if step is self:
                break
            if step._thread != self._thread and step._waits and self._shares(step):
                held = any(map(borrowed_here, step._variables)) or any(step._shares(own) for own in outer)
                if not held:
                    return False
        return True

    def _shares(self, other: UpdateStep) -> bool:
        return not {*map(id, self._variables)}.isdisjoint(map(id, other._variables))

    def _refuse_a_circle(self, holder: Any) -> None:
        """Raise if ``holder`` is the lock of a thread that waits, perhaps through others, for this one."""
        if type(holder) is not WriteLock:
            return
        waiting, grown = {self._thread}, True
        while grown:
            held = [step for step in _steps if step._thread in waiting and not step._waits]
            more = {s._thread for s in _steps if s._waits and s is not self and any(map(s._shares, held))}
            grown = not more <= waiting
            waiting |= more
        if holder.thread in waiting:
            raise FailedPreconditionError(
                "Two threads wait for each other: each runs a compiled call that changes variables, and in "
                "it Python code (a py_function) which changes the other's. Do that after the compiled call."
            )

    def _give_back(self) -> None:
        for variable, lock in zip(reversed(self._variables), reversed(self._locks), strict=True):
            _release(variable, lock)


def commit(locks: Sequence[WriteLock], tensors: Sequence[EagerTensor]) -> None:
    """Give each of the locks its tensor: all of them, also where a signal's handler raises meanwhile."""
    pairs = list(zip(locks, tensors, strict=True))
    try:
        for lock, tensor in pairs:
            lock.tensor = tensor
    except BaseException:
        for lock, tensor in pairs:
            lock.tensor = tensor
        raise


def value_of(variable: Any) -> EagerTensor | None:
    """What the variable holds, once no compiled code writes to it any more; None where it has no value."""
    try:
        found: EagerTensor | None = variable._tensor
    except AttributeError:
        (found,) = _seen([variable])
    return found


def values_of(variables: Sequence[Any]) -> list[EagerTensor]:
    """What the variables hold at one moment: all that one step changes, or nothing of it.

    Raises:
        FailedPreconditionError: a variable has no value.
    """
    found = []
    for variable, tensor in zip(variables, _seen(variables), strict=True):
        if tensor is None:
            raise unset(variable)
        found.append(tensor)
    return found


def owned(tensor: EagerTensor) -> EagerTensor:
    """``tensor``, or a copy where its memory or the order in it isn't what a variable's is."""
    array = tensor._array
    if array.base is None and array.flags.c_contiguous:
        return tensor
    return wrap(array.copy())


def assign(variable: Any, tensor: EagerTensor) -> None:
    """Let the variable hold ``tensor``, which no other object does."""
    if store(variable, tensor):
        return
    if value_of(variable) is None:
        variable._tensor = tensor
        return
    step = UpdateStep([variable])
    with step.running, step as (lock,):
        lock.tensor = tensor


def change(variable: Any, rule: Callable[[EagerTensor], EagerTensor]) -> None:
    """Let the variable hold ``rule(tensor)`` in place of ``tensor``; no change of another thread is lost.

    ``rule`` may be called more than once.

    Raises:
        FailedPreconditionError: as :class:`UpdateStep` does.
    """
    step = UpdateStep([variable])
    with step.running, step as (lock,):
        while True:
            before = lock.tensor
            after = owned(rule(before))
            if lock.tensor is before:  # else a signal handler has changed it
                lock.tensor = after
                return


def restore(variable: Any, tensor: EagerTensor) -> None:
    """:func:`assign`, where a new variable that has not been read begins with ``tensor``."""
    if not restore_initial(variable, tensor):
        assign(variable, tensor)


def unset(variable: Any) -> FailedPreconditionError:
    """The error for a variable without a value."""
    return FailedPreconditionError(
        f"{variable.name} has no value here: it belongs to a graph, and sessions hold its values. "
        "Ask for it with session.run."
    )


def borrowable(variable: Any) -> None:
    """Note that compiled code may write to the variable's buffer without the GIL: a fork waits for it."""
    _borrowable[id(variable)] = variable


_steps: Final[list[UpdateStep]] = []
_borrowable: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()


def _pauses() -> Iterator[float]:
    pause = _SHORTEST
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST)


def _seen(variables: Sequence[Any]) -> list[EagerTensor | None]:
    decide(variables)
    with _lock.lock:  # steps end under it, and compiled code begins none with a tensor that is held here
        holders = [present(v) for v in variables]
        tensors = [x.tensor if type(x) is WriteLock else x for x in holders]
    return [_whole(v, t) for v, t in zip(variables, tensors, strict=True)]


def _whole(variable: Any, tensor: EagerTensor | None) -> EagerTensor | None:
    """``tensor`` when compiled code has ended that writes to it, or a copy for Python code inside of that."""
    if tensor is None or substitute(variable) is not tensor:
        return tensor
    if borrowed_here(variable):  # compiled code calls Python before it writes, so the value is whole
        return wrap(tensor._array.copy())
    for pause in _pauses():
        if substitute(variable) is not tensor:
            break
        time.sleep(pause)
    return tensor


def _acquire(variable: Any, lock: WriteLock) -> bool:
    """Take the variable's tensor for ``lock``; False where another thread or compiled code has it."""
    if take(variable, lock):
        return True
    holder = present(variable)  # which may have come back meanwhile: then the next attempt takes it
    if holder is None:
        raise unset(variable)
    mine = holder.thread == lock.thread if type(holder) is WriteLock else borrowed_here(variable)
    if mine and type(holder) is WriteLock and not holder.compiled:
        lock.outer = holder
        nest(variable, lock, holder)
        return True
    if mine:
        raise FailedPreconditionError(
            f"{variable.name} is being changed by a compiled call, so Python code that runs inside of the "
            "call (a py_function, a signal handler, a finaliser) can't change it too. Let it note what is to "
            "be done, and do it after the call."
        )
    return False


def _release(variable: Any, lock: WriteLock) -> None:
    if lock.outer is not None:
        unnest(variable, lock, lock.outer)
    elif put_back(variable, lock):
        del lock.tensor


_kept_for_fork: Final[list[Any]] = []


def _before_fork() -> None:
    """Wait until nobody writes to a variable's buffer, and let nobody begin.

    A call that takes longer than a second has hardly come to its writes, which are its last steps.
    """
    _lock.bare.acquire()
    end = time.monotonic() + _FORK_WAITS
    for variable in list(_borrowable.values()):
        seen = present(variable)
        _kept_for_fork.append(seen)  # compiled code leaves a tensor alone that is held
        if type(seen) is DeferredInitialValue or borrowed_here(variable):
            continue
        for pause in _pauses():
            if substitute(variable) is not seen or time.monotonic() > end:
                break
            time.sleep(pause)


def _after_fork() -> None:
    _kept_for_fork.clear()
    _lock.bare.release()


def _after_fork_in_child() -> None:
    """Put back what other threads had: they are not in this process."""
    for variable in list(_borrowable.values()):
        lent = substitute(variable)
        if type(lent) is EagerTensor and not borrowed_here(variable):
            variable._tensor = lent
            del variable._substitute
    for step in [step for step in _steps if step.left()]:
        step.end()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
