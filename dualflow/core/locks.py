"""What a fork waits for, locks that a child finds free, and attributes that one thread computes for all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Final, Generic, Self, TypeVar, overload

T = TypeVar("T")

UNFORKABLE: Final = threading.RLock()
"""Held during what a child could not go on with if it inherited the half of it: imports, compiling.

A fork waits until it is free. It is one lock for all of these, since a fork that waited for several could
meet a thread that holds one of them and waits for another. Whoever holds it takes no other lock of this
package.
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=UNFORKABLE.acquire, after_in_parent=UNFORKABLE.release, after_in_child=UNFORKABLE.release
    )


def imported(name: str) -> ModuleType:
    """A module that is imported when first needed.

    A thread that is importing holds locks of Python's own, which nobody in a forked child would let go.

    >>> imported("dualflow.core.locks").imported is imported
    True
    """
    with UNFORKABLE:
        return import_module(name)


class SharedLock:
    """A reentrant lock for a module, used as ``with shared.lock:``.

    In a forked child it is free, unless the thread that forked holds it: of the threads of its parent a child
    has only that one, and a lock that another held would stay taken.

    Attributes:
        lock: the lock itself, whose own ``with`` no Ctrl-C can leave half done.
    """

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._free_in_child)

    def _free_in_child(self) -> None:
        if self.lock.acquire(blocking=False):
            self.lock.release()
        else:
            self.lock = threading.RLock()


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


class ComputedOnce(Generic[T]):
    """The attribute that :func:`computed_once` makes."""

    def __init__(self, lock: SharedLock, compute: Callable[[Any], T]) -> None:
        self._lock, self._compute = lock, compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        with self._lock.lock:
            kept = instance.__dict__
            if self._name not in kept:
                kept[self._name] = self._compute(instance)
            found: T = kept[self._name]
            return found
