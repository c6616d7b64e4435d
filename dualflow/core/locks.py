"""Locks that are safe with forks and signals, and attributes that are computed once."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Final, Generic, Self, TypeVar, overload

T = TypeVar("T")


class _LockBlock:
    """A context that acquires a lock, and restores at its end how often this thread holds it."""

    __slots__ = ("_before", "_count", "_lock")

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._count = getattr(lock, "_recursion_count", None)
        self._before: int = 0 if self._count is None else self._count()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._release()
        self.__class__ = _LockBlock  # without __del__

    def _release(self) -> None:
        if self._count is None:
            if self._lock.locked():
                self._lock.release()
            return
        while self._count() > self._before:  # of this thread
            self._lock.release()


class SignalSafeLock(_LockBlock):
    """``with SignalSafeLock(lock):`` holds the lock, and releases it even if a signal handler raises.

    With a plain ``with lock:``, an exception from a signal handler can leave the lock held: between acquiring
    it and entering the block (Python 3.14), or at a backward jump in the block (3.13). Unwinding the frame
    then deletes this object, which releases the lock.

    Args:
        lock: an RLock; or a Lock that no other code acquires.
    """

    __slots__ = ()

    def __del__(self) -> None:
        if hasattr(self, "_before"):
            self._release()


def signal_safe(lock: Any) -> AbstractContextManager[Any]:
    """A context manager that holds ``lock``: a :class:`SignalSafeLock` on versions of Python that need it."""
    return SignalSafeLock(lock) if sys.version_info >= (3, 13) else lock


_unforkable: Final = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_unforkable.acquire, after_in_parent=_unforkable.release, after_in_child=_unforkable.release
    )


def unforkable() -> AbstractContextManager[Any]:
    """``with unforkable():`` delays forks by other threads until the block ends.

    It is for operations that a child can't continue if it inherits them half done: imports, compiling. There
    is one lock for all of these, since a fork that waited for several could deadlock with a thread that holds
    one of them and waits for another. In the block no other lock of this package is acquired.
    """
    return signal_safe(_unforkable)


def imported(name: str) -> ModuleType:
    """Import a module lazily.

    A thread that is importing holds Python's import locks, which would stay locked in a forked child.

    >>> imported("dualflow.core.locks").imported is imported
    True
    """
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    with unforkable():
        return import_module(name)


class SharedLock:
    """A reentrant lock for a module, used as ``with shared.lock:``.

    In a forked child it is released, unless the forking thread holds it: a child has only that thread, and a
    lock held by another one would never be released.

    Attributes:
        bare: the lock itself, for ``acquire`` and ``release``.
    """

    __slots__ = ("bare",)

    def __init__(self) -> None:
        self.bare = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._free_in_child)

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """A context manager that holds the lock."""
        return signal_safe(self.bare)

    @contextmanager
    def released(self) -> Iterator[None]:
        """A context in which this thread doesn't hold the lock, even if it has acquired it several times."""
        bare: Any = self.bare
        count = bare._release_save() if bare._is_owned() else None
        try:
            yield
        finally:
            if count is not None:
                bare._acquire_restore(count)

    def _free_in_child(self) -> None:
        if self.bare.acquire(blocking=False):
            self.bare.release()
        else:
            self.bare = threading.RLock()


def computed_once(lock: SharedLock) -> Callable[[Callable[[Any], T]], ComputedOnce[T]]:
    """A read-only attribute, computed under ``lock`` at the first read, and stored in the instance's dict.

    Up to Python 3.11, ``functools.cached_property`` has one lock for all instances, which threads may acquire
    in any order with other locks.

    >>> class Circle:
    ...     @computed_once(SharedLock())
    ...     def area(self) -> float:
    ...         print("computing")
    ...         return 3.0
    >>> circle = Circle()
    >>> circle.area, circle.area
    computing
    (3.0, 3.0)
    """
    return lambda compute: ComputedOnce(lock, compute)


class cached_attribute(Generic[T]):
    """An attribute that is computed at the first access; concurrent first accesses each compute it.

    Up to Python 3.11, ``functools.cached_property`` holds a lock meanwhile: a child that is forked at that
    moment would wait for it forever.

    >>> class Circle:
    ...     @cached_attribute
    ...     def area(self) -> float:
    ...         print("computing")
    ...         return 3.0
    >>> circle = Circle()
    >>> circle.area, circle.area
    computing
    (3.0, 3.0)
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        return self if instance is None else self._computed(instance)

    def _computed(self, instance: object) -> T:
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


class ComputedOnce(cached_attribute[T]):
    """The descriptor of :func:`computed_once`."""

    def __init__(self, lock: SharedLock, compute: Callable[[Any], T]) -> None:
        super().__init__(compute)
        self._lock = lock

    def _computed(self, instance: object) -> T:
        with self._lock.lock:
            if self._name in instance.__dict__:
                value: T = instance.__dict__[self._name]
                return value
            return super()._computed(instance)
