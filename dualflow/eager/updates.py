"""Changes of a variable: each is one step for all threads, and what was read of it never changes.

A variable's tensor lies in its slot ``_tensor``, where reads find it. A change that computes the new tensor
from the old one does so beside the slot, and puts it there if the old one is still in place. Where that can't
be the slot is empty for the time of the change: reads and other changes come here, and ``_lent`` holds

* a claim: a thread computes in new memory. Reads get the old tensor, other changes wait in line.
* a tensor: compiled code writes to its buffer without the GIL, in the thread whose number is in ``_lender``.
  A read takes hold of the tensor and waits for the end: later changes see that it is held and leave it alone.
* a first value: the variable is new, and its first reader asks whether a checkpoint has a value for it.

CPython switches threads and runs signal handlers at calls and backward jumps only, so a few loads and stores
in a row are one step. Where there is no GIL every change takes a claim, under the lock.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from threading import Lock, get_ident
from typing import Any, Final

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.locks import SharedLock, held
from dualflow.eager.tensor import EagerTensor, wrap

GIL: Final[bool] = getattr(sys, "_is_gil_enabled", lambda: True)()
_SHORTEST, _LONGEST = 2e-5, 1e-3
_FORK_WAITS: Final = 1.0
_lock: Final = SharedLock()


class Claim:
    """A thread's right to change a variable.

    Attributes:
        tensor: what the variable holds, and will hold when the claim ends.
        outer: the claim of the same thread that this one interrupts.
        thread: the thread.
        compiled: whether it is a compiled call's, which has read the variable and will write to it.
    """

    __slots__ = ("compiled", "outer", "tensor", "thread")
    tensor: EagerTensor

    def __init__(self, thread: int, compiled: bool) -> None:
        self.thread = thread
        self.compiled = compiled
        self.outer: Claim | None = None


class FirstValue:
    """What a new variable holds until somebody reads it, while a checkpoint may have a value for it.

    Attributes:
        tensor: the value that it was created with.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: EagerTensor) -> None:
        self.tensor = tensor


class UpdateStep:
    """``with step.running, step as claims:`` is a time in which no other thread changes some variables.

    Reads get what a claim holds; a claim's ``tensor`` may be replaced, by one that nobody else holds. Threads
    take turns in the order in which they came. A step inside of a step of the same thread, say in a signal
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

    __slots__ = ("_claims", "_running", "_seen", "_thread", "_variables", "_waits")

    def __init__(self, variables: Sequence[Any], *, compiled: bool = False) -> None:
        self._running = Lock()
        self._variables = tuple(variables)
        self._thread = get_ident()
        self._claims = [Claim(self._thread, compiled) for _ in variables]
        self._waits = True
        self._seen: list[Any] = []

    @property
    def running(self) -> AbstractContextManager[Any]:
        """What to hold during the step."""
        return held(self._running)

    def __enter__(self) -> list[Claim]:
        _settle(self._variables)
        with _lock.lock:
            _steps.append(self)
        for pause in _pauses():
            if self._take():
                break
            time.sleep(pause)
        return self._claims

    def __exit__(self, *exc: object) -> None:
        self.end()

    def end(self) -> None:
        """Let the variables hold what the claims do."""
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
            self._seen = [_present(v) for v in self._variables]
            if not self._is_next():
                return False
            for variable, claim in zip(self._variables, self._claims, strict=True):
                if not _claim(variable, claim):
                    self._give_back()
                    self._refuse_a_circle(_lent(variable))
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
                held = any(map(_is_mine, step._variables)) or any(step._shares(own) for own in outer)
                if not held:
                    return False
        return True

    def _shares(self, other: UpdateStep) -> bool:
        return not {*map(id, self._variables)}.isdisjoint(map(id, other._variables))

    def _refuse_a_circle(self, lent: Any) -> None:
        """Raise if ``lent`` is the claim of a thread that waits, perhaps through others, for this one."""
        if type(lent) is not Claim:
            return
        waiting, grown = {self._thread}, True
        while grown:
            held = [step for step in _steps if step._thread in waiting and not step._waits]
            more = {s._thread for s in _steps if s._waits and s is not self and any(map(s._shares, held))}
            grown = not more <= waiting
            waiting |= more
        if lent.thread in waiting:
            raise FailedPreconditionError(
                "Two threads wait for each other: each runs a compiled call that changes variables, and in "
                "it Python code (a py_function) which changes the other's. Do that after the compiled call."
            )

    def _give_back(self) -> None:
        for variable, claim in zip(reversed(self._variables), reversed(self._claims), strict=True):
            _release(variable, claim)


def hold(claims: Sequence[Claim], tensors: Sequence[EagerTensor]) -> None:
    """Let each of the claims hold its tensor: all of them, also where a signal's handler raises meanwhile."""
    pairs = list(zip(claims, tensors, strict=True))
    try:
        for claim, tensor in pairs:
            claim.tensor = tensor
    except BaseException:
        for claim, tensor in pairs:
            claim.tensor = tensor
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
    """Let the variable hold ``tensor``, which nobody else does."""
    if GIL:
        try:
            if variable._tensor is not None:  # no call until it is stored: one step
                variable._tensor = tensor
                return
        except AttributeError:
            pass
    if value_of(variable) is None:
        variable._tensor = tensor
        return
    step = UpdateStep([variable])
    with step.running, step as (claim,):
        claim.tensor = tensor


def change(variable: Any, rule: Callable[[EagerTensor], EagerTensor]) -> None:
    """Let the variable hold ``rule(tensor)`` in place of ``tensor``; no change of another thread is lost.

    ``rule`` may be called more than once.

    Raises:
        FailedPreconditionError: as :class:`UpdateStep` does.
    """
    try:
        before = variable._tensor if GIL else None
    except AttributeError:
        before = None
    if before is not None:  # held until the end: compiled code leaves its buffer alone
        after = owned(rule(before))
        try:
            if variable._tensor is before:  # no call until it is stored: one step
                variable._tensor = after
                return
        except AttributeError:
            pass
    step = UpdateStep([variable])
    with step.running, step as (claim,):
        while True:
            before = claim.tensor
            after = owned(rule(before))
            if claim.tensor is before:  # else a signal handler has changed it
                claim.tensor = after
                return


def create(variable: Any, tensor: EagerTensor) -> None:
    """Give a new variable its first tensor, which nobody else holds."""
    if waiting:
        variable._lent = FirstValue(tensor)
    else:
        variable._tensor = tensor


def is_new(variable: Any) -> bool:
    """Whether nobody has read a variable that was created while checkpoints have values left."""
    return type(_lent(variable)) is FirstValue


def restore(variable: Any, tensor: EagerTensor) -> None:
    """:func:`assign`, and a new variable that nobody has read begins with ``tensor``."""
    if is_new(variable):
        variable._tensor = tensor
        del variable._lent  # no call until here: one step
    else:
        assign(variable, tensor)


def _settle(variables: Sequence[Any]) -> None:
    """Ask for the values of new variables that are read for the first time."""
    for variable in variables:
        if is_new(variable):
            with settling.lock:
                _begin(variable)


def _begin(variable: Any) -> None:
    first = _lent(variable)
    if type(first) is not FirstValue:  # another thread was here
        return
    try:
        for ask in waiting[:]:  # who has nothing left goes
            ask()
    finally:
        if _lent(variable) is first:
            variable._tensor = first.tensor
            del variable._lent  # no call until here: one step


def unset(variable: Any) -> FailedPreconditionError:
    """The error for a variable without a value."""
    return FailedPreconditionError(
        f"{variable.name} has no value here: it belongs to a graph, and sessions hold its values. "
        "Ask for it with session.run."
    )


def lendable(variable: Any) -> None:
    """Note that compiled code may write to the variable's buffer without the GIL: a fork waits for it."""
    _lendable[id(variable)] = variable


waiting: Final[list[Callable[[], None]]] = []
"""Who has values for variables that are yet to be created, and restores those that are there when called."""
settling: Final = SharedLock()
"""Held while new variables get their first values, and while those who wait restore."""
_steps: Final[list[UpdateStep]] = []
_lendable: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()


def _pauses() -> Iterator[float]:
    pause = _SHORTEST
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST)


def _lent(variable: Any) -> Any:
    try:
        return variable._lent
    except AttributeError:
        return None


def _present(variable: Any) -> Any:
    """The tensor that the variable holds, or what is in its place during a step; None without a value."""
    try:
        return variable._tensor
    except AttributeError:
        try:
            return variable._lent  # no call since the slot was empty
        except AttributeError:
            return None


def _is_mine(variable: Any) -> bool:
    """Whether it is this thread, in a signal handler or a finaliser, whose compiled code has the tensor."""
    try:
        return bool(variable._lender == get_ident())
    except AttributeError:
        return False


def _seen(variables: Sequence[Any]) -> list[EagerTensor | None]:
    _settle(variables)
    with _lock.lock:  # steps end under it, and compiled code begins none with a tensor that is held here
        present = [_present(v) for v in variables]
        tensors = [x.tensor if type(x) is Claim else x for x in present]
    return [_whole(v, t) for v, t in zip(variables, tensors, strict=True)]


def _whole(variable: Any, tensor: EagerTensor | None) -> EagerTensor | None:
    """``tensor`` when compiled code has ended that writes to it, or a copy for Python code inside of that."""
    if tensor is None or _lent(variable) is not tensor:
        return tensor
    if _is_mine(variable):  # compiled code calls Python before it writes, so the value is whole
        return wrap(tensor._array.copy())
    for pause in _pauses():
        if _lent(variable) is not tensor:
            break
        time.sleep(pause)
    return tensor


def _claim(variable: Any, claim: Claim) -> bool:
    """Empty the variable's slot for ``claim``; False where another thread or compiled code has the tensor."""
    try:
        claim.tensor = variable._tensor
        variable._lent = claim
        del variable._tensor  # no call until here: one step
        return True
    except AttributeError:
        try:
            lent = variable._lent
        except AttributeError:
            raise unset(variable) from None
    mine = lent.thread == claim.thread if type(lent) is Claim else _is_mine(variable)
    if mine and type(lent) is Claim and not lent.compiled:
        claim.outer, claim.tensor = lent, lent.tensor
        variable._lent = claim
        return True
    if mine:
        raise FailedPreconditionError(
            f"{variable.name} is being changed by a compiled call, so Python code that runs inside of the "
            "call (a py_function, a signal handler, a finaliser) can't change it too. Let it note what is to "
            "be done, and do it after the call."
        )
    return False


def _release(variable: Any, claim: Claim) -> None:
    if _lent(variable) is not claim:
        return
    outer = claim.outer
    if outer is not None:
        outer.tensor = claim.tensor
        variable._lent = outer
    else:
        variable._tensor = claim.tensor
        del claim.tensor
        del variable._lent  # no call until here: one step


_kept_for_fork: Final[list[Any]] = []


def _before_fork() -> None:
    """Wait until nobody writes to a variable's buffer, and let nobody begin.

    A call that takes longer than a second has hardly come to its writes, which are its last steps.
    """
    _lock.bare.acquire()
    end = time.monotonic() + _FORK_WAITS
    for variable in list(_lendable.values()):
        seen = _present(variable)
        _kept_for_fork.append(seen)  # compiled code leaves a tensor alone that is held
        for pause in _pauses():
            lent = _lent(variable)
            if lent is not seen or type(lent) is FirstValue or _is_mine(variable) or time.monotonic() > end:
                break
            time.sleep(pause)


def _after_fork() -> None:
    _kept_for_fork.clear()
    _lock.bare.release()


def _after_fork_in_child() -> None:
    """Put back what other threads had: they are not in this process."""
    for variable in list(_lendable.values()):
        lent = _lent(variable)
        if type(lent) is EagerTensor and not _is_mine(variable):
            variable._tensor = lent
            del variable._lent
    for step in [step for step in _steps if step.left()]:
        step.end()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
