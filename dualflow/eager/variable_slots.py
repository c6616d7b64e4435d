"""The slots of a variable, and atomic operations on them.

``_tensor`` is the variable's present tensor. It is empty while the variable is locked or borrowed, or before
its initial value is determined; then ``_substitute`` is one of:

* a write lock: a thread computes the next value in new memory (``updates.py``).
* the tensor itself: compiled code writes to its buffer without the GIL, in the thread ``_borrower``.
* a deferred initial value (``initial_values.py``).

Each function here is atomic: no other thread, and no signal handler, runs between its first load and its
last store. CPython switches threads and runs handlers only at calls and backward jumps; a test disassembles
the functions and checks that they have none. Without a GIL, :func:`store` and :func:`replace` do nothing, and
callers of the others hold the lock of ``updates.py``. No other code relies on where threads switch. A lock
around these operations makes an assignment of a small tensor a quarter slower, and twice as slow if the lock
must survive Ctrl-C (Python 3.13 and later).
"""

from __future__ import annotations

import sys
from threading import get_ident
from typing import Any, Final, Protocol

from dualflow.eager.tensor import EagerTensor

GIL: Final[bool] = getattr(sys, "_is_gil_enabled", lambda: True)()


class Holder(Protocol):
    """A write lock or borrow marker that stands in for a variable's tensor and keeps a reference to it."""

    tensor: EagerTensor


def store(variable: Any, tensor: EagerTensor) -> bool:
    """Replace the present tensor; False if the slot is empty, or holds a tensor on another device."""
    try:
        if GIL and variable._tensor.__class__ is tensor.__class__:
            variable._tensor = tensor
            return True
    except AttributeError:
        pass
    return False


def replace(variable: Any, before: EagerTensor, after: EagerTensor) -> bool:
    """Replace ``before`` by ``after``; False if ``before`` isn't the present tensor any more."""
    try:
        if GIL and variable._tensor is before:
            variable._tensor = after
            return True
    except AttributeError:
        pass
    return False


def take(variable: Any, lock: Holder) -> bool:
    """Move the present tensor to ``lock``, which becomes its substitute; False if the slot is empty."""
    try:
        lock.tensor = variable._tensor
        variable._substitute = lock
        del variable._tensor
        return True
    except AttributeError:
        return False


def push_lock(variable: Any, lock: Holder, outer: Holder) -> None:
    """Make ``lock`` the substitute instead of ``outer``, with the same tensor."""
    lock.tensor = outer.tensor
    variable._substitute = lock


def pop_lock(variable: Any, lock: Holder, outer: Holder) -> None:
    """Restore the outer write lock, with the current tensor of ``lock``, if ``lock`` is the substitute."""
    try:
        if variable._substitute is lock:
            outer.tensor = lock.tensor
            variable._substitute = outer
    except AttributeError:
        pass


def put_back(variable: Any, holder: Holder) -> bool:
    """Move the tensor of ``holder`` back into the variable; False if ``holder`` is not its substitute."""
    try:
        if variable._substitute is holder:
            variable._tensor = holder.tensor
            del variable._substitute
            return True
    except AttributeError:
        pass
    return False


def slot_content(variable: Any) -> Any:
    """A variable's current tensor, or the write lock in its place; None if it has no value."""
    try:
        return variable._tensor
    except AttributeError:
        try:
            return variable._substitute
        except AttributeError:
            return None


def substitute(variable: Any) -> Any:
    """What replaces the tensor of a variable, such as its deferred initial value; None if nothing does."""
    try:
        return variable._substitute
    except AttributeError:
        return None


def borrowed_here(variable: Any) -> bool:
    """Whether compiled code in this thread has borrowed the tensor: the caller is Python code inside it."""
    try:
        return bool(variable._borrower == get_ident())
    except AttributeError:
        return False
