"""What a fork waits for, locks that no signal leaves taken, and attributes that are computed once for all."""

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


class _Held:
    """A lock, and how often this thread had it before."""

    __slots__ = ("_before", "_count", "_lock")

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._count = getattr(lock, "_recursion_count", None)
        self._before: int = 0 if self._count is None else self._count()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._give_back()
        self.__class__ = _Held  # which has nothing to do when it goes

    def _give_back(self) -> None:
        if self._count is None:
            if self._lock.locked():
                self._lock.release()
            return
        while self._count() > self._before:  # of this thread
            self._lock.release()


class Hold(_Held):
    """``with Hold(lock):`` has the lock until the block ends, however it ends.

    A signal's handler may raise where ``with lock:`` doesn't see it, and the lock stays taken: between
    taking it and entering the block (Python 3.14), or where a loop in the block jumps back (3.13). The frame
    that is left then lets go of this object, which gives the lock back.

    Args:
        lock: an RLock; or a Lock that nobody else takes.
    """

    __slots__ = ()

    def __del__(self) -> None:
        if hasattr(self, "_before"):
            self._give_back()


def held(lock: Any) -> AbstractContextManager[Any]:
    """The lock for a ``with`` block: itself, where Python's own ``with`` is enough."""
    return Hold(lock) if sys.version_info >= (3, 13) else lock


_unforkable: Final = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_unforkable.acquire, after_in_parent=_unforkable.release, after_in_child=_unforkable.release
    )


def unforkable() -> AbstractContextManager[Any]:
    """``with unforkable():`` is a time in which no other thread of this package forks.

    It is for what a child could not go on with if it inherited the half of it: imports, compiling. There is
    one lock for all of these, since a fork that waited for several could meet a thread that holds one of them
    and waits for another. Whoever holds it takes no other lock of this package.
    """
    return held(_unforkable)


def imported(name: str) -> ModuleType:
    """A module that is imported when first needed.

    A thread that is importing holds locks of Python's own, which nobody in a forked child would let go.

    >>> imported("dualflow.core.locks").imported is imported
    True
    """
    found = sys.modules.get(name)
    if found is not None and not getattr(found.__spec__, "_initializing", False):
        return found
    with unforkable():
        return import_module(name)


class SharedLock:
    """A reentrant lock for a module, used as ``with shared.lock:``.

    In a forked child it is free, unless the thread that forked holds it: of the threads of its parent a child
    has only that one, and a lock that another held would stay taken.

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
        """The lock for a ``with`` block."""
        return held(self.bare)

    @contextmanager
    def released(self) -> Iterator[None]:
        """The block in which this thread does not hold the lock, however often it has taken it."""
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
    """A read-only attribute, computed when first read, under ``lock``, and kept in the instance's dict.

    ``functools.cached_property`` locks too up to Python 3.11, but all instances by one lock of its own, which
    threads then take before or after other locks as it happens.

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
    """An attribute that is computed at the first access, by each thread that comes before it is there.

    ``functools.cached_property`` holds a lock meanwhile, up to Python 3.11: a child that is forked at that
    moment would wait for it without end.

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
        return self if instance is None else self._kept(instance)

    def _kept(self, instance: object) -> T:
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


class ComputedOnce(cached_attribute[T]):
    """The attribute that :func:`computed_once` makes."""

    def __init__(self, lock: SharedLock, compute: Callable[[Any], T]) -> None:
        super().__init__(compute)
        self._lock = lock

    def _kept(self, instance: object) -> T:
        with self._lock.lock:
            if self._name in instance.__dict__:
                value: T = instance.__dict__[self._name]
                return value
            return super()._kept(instance)
