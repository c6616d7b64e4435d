"""Changes of variables: atomic for all threads, and a tensor that was read never changes.

A tensor is an immutable snapshot. A change computes the new tensor in new memory and replaces the present
one by compare-and-swap (``variable_slots.py``). If this fails, and for changes of several variables, threads
take write locks, in the order of their requests: reads return the snapshot that a lock holds, other changes
wait.

While compiled code writes to a variable's buffer, a read takes a reference to the tensor and waits for the
end: later compiled calls see the reference and don't write to its buffer. The C fast call moves the tensor
to the substitute slot meanwhile; other calls have a write lock that is ``in_place``. Without a GIL no buffer
is written to, and every change takes a write lock.
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

import numpy as np

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.locks import SharedLock, signal_safe
from dualflow.eager.device_tensor import DeviceTensor, placed_like
from dualflow.eager.initial_values import DeferredInitialValue, resolve_initial_values, restore_initial
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.eager.variable_slots import (
    GIL,
    borrowed_here,
    pop_lock,
    push_lock,
    put_back,
    slot_content,
    store,
    substitute,
    take,
)

_MIN_PAUSE, _MAX_PAUSE = 2e-5, 1e-3
"""The first and the longest pause in seconds of a thread that waits for a variable."""
_FORK_TIMEOUT: Final = 1.0
"""The maximum number of seconds that a fork waits for a thread that writes to a variable's buffer."""
_lock: Final = SharedLock()


class WriteLock:
    """A thread's exclusive right to change a variable.

    Attributes:
        tensor: the variable's present tensor; replaced by the one to commit when the lock is released.
        outer: the lock of the same thread that this one interrupts.
        thread: the thread.
        compiled: whether a compiled call has taken it, which has read the variable and will write to it.
        in_place: whether compiled code writes to the buffer of ``tensor``: reads wait until it is False.
    """

    __slots__ = ("compiled", "in_place", "outer", "tensor", "thread")
    tensor: EagerTensor

    def __init__(self, thread: int, compiled: bool) -> None:
        self.thread = thread
        self.compiled = compiled
        self.in_place = False
        self.outer: WriteLock | None = None


class VariableUpdate:
    """``with update.running, update as locks:`` is a block with exclusive rights to change some variables.

    Reads return the tensor of a write lock, which may be replaced by a tensor without other references.
    Threads get their locks in the order of their requests. An update inside another one of the same thread,
    for example in a signal handler, does not wait.

    Args:
        variables: the variables to change, each once.
        compiled: whether a compiled call changes them; it would overwrite changes by an update inside it.

    Attributes:
        locks: the write lock of each variable.
        running: held during the update. Ctrl-C may interrupt ``__exit__``, but this lock is released in any
            case; then the next update does what remains to be done.

    Raises:
        FailedPreconditionError: a variable has no value; the update is requested by Python code inside a
            compiled call that changes the variable; or waiting would be a deadlock of two threads.
    """

    __slots__ = ("_running", "_tensors", "_thread", "_variables", "_waits", "locks")

    def __init__(self, variables: Sequence[Any], *, compiled: bool = False) -> None:
        self._running = Lock()
        self._variables = tuple(variables)
        self._thread = get_ident()
        self.locks = [WriteLock(self._thread, compiled) for _ in variables]
        self._waits = True
        self._tensors: list[Any] = []

    @property
    def running(self) -> AbstractContextManager[Any]:
        """The context manager to enter during the update."""
        return signal_safe(self._running)

    def __enter__(self) -> list[WriteLock]:
        resolve_initial_values(self._variables)
        with _lock.lock:
            _updates.append(self)
        for pause in _pauses():
            if self._acquire_all():
                break
            time.sleep(pause)
        return self.locks

    def __exit__(self, *exc: object) -> None:
        self.end()

    def begin_in_place(self) -> bool:
        """Let compiled code write to the buffers of the locks' tensors: reads wait until the end.

        From now on this thread may not wait for another one. Returns False, and changes nothing,
        unless the locks have the only references to all tensors.
        """
        with _lock.lock:  # reads by other threads take their references under it
            self._set_in_place(True)  # from now on, reads by signal handlers in this thread get copies
            exclusive = _COUNTS_REFERENCES and all(map(_is_exclusive, self.locks))
            self._set_in_place(exclusive)
        return exclusive

    def end(self) -> None:
        """Commit the tensors of the locks to the variables, and release the locks."""
        self._set_in_place(False)  # without the lock, which a fork holds while it waits for this
        with _lock.lock:
            self._release_all()
            if self in _updates:
                _updates.remove(self)
            self._tensors = []

    def is_abandoned(self) -> bool:
        """Whether the update's thread was lost in a fork."""
        return self._thread != get_ident()

    def _acquire_all(self) -> bool:
        with _lock.lock:
            _end_interrupted()
            # Compiled code doesn't borrow tensors with other references, so this update can't starve.
            self._tensors = [slot_content(v) for v in self._variables]
            if not self._is_next():
                return False
            for variable, lock in zip(self._variables, self.locks, strict=True):
                if not _acquire(variable, lock):
                    self._release_all()
                    self._raise_if_deadlocked(substitute(variable))
                    return False
            self._tensors, self._waits = [], False
            return True

    def _is_next(self) -> bool:
        """Whether no thread requested one of the variables earlier, except threads that wait for this one."""
        outer = [update for update in _updates if update is not self and update._thread == self._thread]
        for update in _updates:
            if update is self:
                break
            if update._thread != self._thread and update._waits and self._shares(update):
                held = any(map(borrowed_here, update._variables)) or any(update._shares(own) for own in outer)
                if not held:
                    return False
        return True

    def _shares(self, other: VariableUpdate) -> bool:
        return not {*map(id, self._variables)}.isdisjoint(map(id, other._variables))

    def _raise_if_deadlocked(self, holder: Any) -> None:
        """Raise if ``holder`` is the lock of a thread that waits, perhaps transitively, for this one."""
        if type(holder) is not WriteLock:
            return
        waiting, changed = {self._thread}, True
        while changed:
            held = [update for update in _updates if update._thread in waiting and not update._waits]
            more = {s._thread for s in _updates if s._waits and s is not self and any(map(s._shares, held))}
            changed = not more <= waiting
            waiting |= more
        if holder.thread in waiting:
            raise FailedPreconditionError(
                "Two threads wait for each other: each runs a compiled call that changes variables, and in "
                "it Python code (a py_function) that changes the other's. Do that after the compiled call."
            )

    def _set_in_place(self, value: bool) -> None:
        for lock in self.locks:
            lock.in_place = value

    def _release_all(self) -> None:
        for variable, lock in zip(reversed(self._variables), reversed(self.locks), strict=True):
            _release(variable, lock)


def commit(locks: Sequence[WriteLock], tensors: Sequence[EagerTensor]) -> None:
    """Assign each tensor to the variable of its lock: to all, even if a signal handler raises meanwhile.

    A variable stays on its device.
    """
    pairs = [(lock, placed_like(tensor, lock.tensor)) for lock, tensor in zip(locks, tensors, strict=True)]
    try:
        for lock, tensor in pairs:
            lock.tensor = tensor
    except BaseException:
        for lock, tensor in pairs:
            lock.tensor = tensor
        raise


def tensor_of(variable: Any) -> EagerTensor | None:
    """The variable's tensor without waiting, wherever it is held; None if it has no value."""
    content = slot_content(variable)
    if content is None or isinstance(content, EagerTensor):
        return content
    tensor: EagerTensor = content.tensor
    return tensor


def value_of(variable: Any) -> EagerTensor | None:
    """The variable's tensor, after waiting for compiled code that writes to it; None if it has no value."""
    try:
        tensor: EagerTensor | None = variable._tensor
    except AttributeError:
        (tensor,) = _read([variable])
    return tensor


def values_of(variables: Sequence[Any]) -> list[EagerTensor]:
    """A consistent snapshot of the variables: with all changes of an update, or none of them.

    Raises:
        FailedPreconditionError: a variable has no value.
    """
    tensors = []
    for variable, tensor in zip(variables, _read(variables), strict=True):
        if tensor is None:
            raise unset(variable)
        tensors.append(tensor)
    return tensors


def owned(tensor: EagerTensor) -> EagerTensor:
    """``tensor`` if its array owns its memory and is C-contiguous, or is on a device; otherwise a copy."""
    if type(tensor) is DeviceTensor:
        return tensor
    array = tensor._array
    if array.base is None and array.flags.c_contiguous:
        return tensor
    return wrap(array.copy())


def assign(variable: Any, tensor: EagerTensor) -> None:
    """Assign ``tensor``, which must have no other reference."""
    if store(variable, tensor):
        return
    if value_of(variable) is None:
        variable._tensor = tensor
        return
    update = VariableUpdate([variable])
    with update.running, update as (lock,):
        lock.tensor = placed_like(tensor, lock.tensor)


def change(variable: Any, rule: Callable[[EagerTensor], EagerTensor]) -> None:
    """Replace the variable's ``tensor`` by ``rule(tensor)``, atomically: no change by another thread is lost.

    ``rule`` may be called more than once.

    Raises:
        FailedPreconditionError: as for :class:`VariableUpdate`.
    """
    update = VariableUpdate([variable])
    with update.running, update as (lock,):
        while True:
            before = lock.tensor
            after = owned(placed_like(rule(before), before))
            if lock.tensor is before:  # otherwise a signal handler has changed it
                lock.tensor = after
                return


def restore(variable: Any, tensor: EagerTensor) -> None:
    """:func:`assign`; for a new variable that has not been read, set its initial value."""
    if not restore_initial(variable, tensor):
        assign(variable, tensor)


def unset(variable: Any) -> FailedPreconditionError:
    """The error for reading a variable without a value."""
    return FailedPreconditionError(
        f"{variable.name} has no value here: it belongs to a graph, and sessions hold its values. "
        "Read it with session.run."
    )


def borrowable(variable: Any) -> None:
    """Record that compiled code may write to the variable's buffer without the GIL: a fork waits for it."""
    _borrowable[id(variable)] = variable


_updates: Final[list[VariableUpdate]] = []
_borrowable: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()


def _references(lock: WriteLock) -> tuple[int, int]:
    """The reference counts of a lock's tensor and of its array, this function's references included."""
    return sys.getrefcount(lock.tensor), sys.getrefcount(lock.tensor._array)


def _only_references() -> tuple[int, int]:
    """:func:`_references` of a lock with the only reference to its tensor."""
    lock = WriteLock(0, compiled=False)
    lock.tensor = wrap(np.zeros(1))
    return _references(lock)


_COUNTS_REFERENCES: Final = GIL and sys.implementation.name == "cpython"
_ONLY_REFERENCES: Final = _only_references() if _COUNTS_REFERENCES else (0, 0)


def _is_exclusive(lock: WriteLock) -> bool:
    """Whether only ``lock`` refers to its tensor, and only that to its array, which may be written to."""
    if type(lock.tensor) is not EagerTensor or _references(lock) != _ONLY_REFERENCES:
        return False
    array = lock.tensor._array
    return type(array) is np.ndarray and array.flags.owndata and array.flags.carray


def _end_interrupted() -> None:
    """End the updates that a signal handler has interrupted before they ended; ``_lock`` is held."""
    for update in [update for update in _updates if not update._running.locked()]:
        update.end()


def _pauses() -> Iterator[float]:
    pause = _MIN_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, _MAX_PAUSE)


def _read(variables: Sequence[Any]) -> list[EagerTensor | None]:
    resolve_initial_values(variables)
    with _lock.lock:  # updates end under it, and compiled code doesn't borrow tensors referenced here
        contents = [slot_content(v) for v in variables]
        tensors = [x.tensor if type(x) is WriteLock else x for x in contents]
    return [
        tensor if hasattr(variable, "_tensor") else _finished(variable, content, tensor)
        for variable, content, tensor in zip(variables, contents, tensors, strict=True)
    ]


def _finished(variable: Any, content: Any, tensor: EagerTensor | None) -> EagerTensor | None:
    """``tensor``, after waiting for compiled code that writes to it; a copy for Python code inside that.

    ``content`` is the tensor, or the write lock that has it.
    """
    if tensor is None or not _is_written(variable, content):
        return tensor
    if _is_of_this_thread(variable, content):  # Python runs before or after all writes: no value is torn
        return wrap(tensor._array.copy())
    for pause in _pauses():
        if not _is_written(variable, content):
            break
        time.sleep(pause)
        with _lock.lock:
            _end_interrupted()
    return tensor


def _is_written(variable: Any, content: Any) -> bool:
    """Whether compiled code may be writing to a variable's tensor; ``content`` is that, or a write lock."""
    return content.in_place if type(content) is WriteLock else substitute(variable) is content


def _is_of_this_thread(variable: Any, content: Any) -> bool:
    """Whether this thread has the write lock ``content``, or has borrowed the variable's tensor."""
    return content.thread == get_ident() if type(content) is WriteLock else borrowed_here(variable)


def _acquire(variable: Any, lock: WriteLock) -> bool:
    """Acquire ``lock`` for the variable; False if another thread or compiled code has its tensor."""
    if take(variable, lock):
        return True
    content = slot_content(variable)  # may have been put back meanwhile: then the next attempt succeeds
    if content is None:
        raise unset(variable)
    mine = content.thread == lock.thread if type(content) is WriteLock else borrowed_here(variable)
    if mine and type(content) is WriteLock and not content.compiled:
        lock.outer = content
        push_lock(variable, lock, content)
        return True
    if mine:
        raise FailedPreconditionError(
            f"{variable.name} is being changed by a compiled call, so Python code that runs inside the call "
            "(a py_function, a signal handler, a finalizer) can't change it as well. Change it after the "
            "call."
        )
    return False


def _release(variable: Any, lock: WriteLock) -> None:
    if lock.outer is not None:
        pop_lock(variable, lock, lock.outer)
    elif put_back(variable, lock):
        del lock.tensor


_kept_for_fork: Final[list[Any]] = []


def _before_fork() -> None:
    """Wait until no thread writes to a variable's buffer, and block new writes.

    A call that takes longer than a second is unlikely to be writing yet: writes are its last steps.
    """
    _lock.bare.acquire()
    end = time.monotonic() + _FORK_TIMEOUT
    contents = [(variable, slot_content(variable)) for variable in list(_borrowable.values())]
    contents += [pair for update in _updates for pair in zip(update._variables, update.locks, strict=True)]
    for variable, content in contents:
        _kept_for_fork.append(content)  # compiled code doesn't borrow tensors with other references
        if type(content) is DeferredInitialValue or _is_of_this_thread(variable, content):
            continue
        for pause in _pauses():
            if not _is_written(variable, content) or time.monotonic() > end:
                break
            time.sleep(pause)


def _after_fork() -> None:
    _kept_for_fork.clear()
    _lock.bare.release()


def _after_fork_in_child() -> None:
    """Put back tensors that were borrowed or locked by other threads, which don't exist in this process."""
    for variable in list(_borrowable.values()):
        borrowed = substitute(variable)
        if type(borrowed) is EagerTensor and not borrowed_here(variable):
            variable._tensor = borrowed
            del variable._substitute
    for update in [update for update in _updates if update.is_abandoned()]:
        update.end()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
