"""The slots of a variable, and the steps in which they change.

``_tensor`` has the variable's present tensor. It is empty while the variable is locked or borrowed, or before
its first value is decided; then ``_substitute`` has what stands for the tensor:

* a write lock: a thread computes the next value in new memory (``updates.py``).
* the tensor itself: compiled code writes to its buffer without the GIL, in the thread of number
    ``_borrower``.
* a deferred first value (``initial_values.py``).

Each function here is one step: no other thread, and no signal handler, runs between its first load and its
last store. CPython switches threads and runs handlers at calls and backward jumps only; a test disassembles
the steps and finds none. Without a GIL, :func:`store` and :func:`replace` do nothing, and the callers of the
others have the lock of ``updates.py``. Nothing else relies on where threads switch. A lock around these steps
makes an assignment of a small tensor a quarter slower, and twice as slow where the lock must survive Ctrl-C
(Python 3.13 and later).
"""

from __future__ import annotations

import sys
from threading import get_ident
from typing import Any, Final, Protocol

from dualflow.eager.tensor import EagerTensor

GIL: Final[bool] = getattr(sys, "_is_gil_enabled", lambda: True)()


class Holder(Protocol):
    """What stands for a variable's present tensor, and has it."""

    tensor: EagerTensor


def store(variable: Any, tensor: EagerTensor) -> bool:
    """Replace the present tensor, whichever it is; False where there is none."""
    try:
        if GIL and variable._tensor is not None:
            variable._tensor = tensor
            return True
    except AttributeError:
        pass
    return False


def replace(variable: Any, before: EagerTensor, after: EagerTensor) -> bool:
    """Replace ``before`` by ``after``; False where ``before`` isn't the present tensor any more."""
    try:
        if GIL and variable._tensor is before:
            variable._tensor = after
            return True
    except AttributeError:
        pass
    return False


def take(variable: Any, lock: Holder) -> bool:
    """Move the present tensor to ``lock``, which then stands for it; False where there is none."""
    try:
        lock.tensor = variable._tensor
        variable._substitute = lock
        del variable._tensor
        return True
    except AttributeError:
        return False


def nest(variable: Any, lock: Holder, outer: Holder) -> None:
    """Let ``lock`` stand for the tensor in place of ``outer``, with the same tensor."""
    lock.tensor = outer.tensor
    variable._substitute = lock


def unnest(variable: Any, lock: Holder, outer: Holder) -> None:
    """Let ``outer`` stand for the tensor again, if ``lock`` still does, with its tensor."""
    try:
        if variable._substitute is lock:
            outer.tensor = lock.tensor
            variable._substitute = outer
    except AttributeError:
        pass


def put_back(variable: Any, holder: Holder) -> bool:
    """Move the tensor of ``holder`` to its slot; False where ``holder`` doesn't stand for it any more."""
    try:
        if variable._substitute is holder:
            variable._tensor = holder.tensor
            del variable._substitute
            return True
    except AttributeError:
        pass
    return False


def present(variable: Any) -> Any:
    """The present tensor, or what stands for it; None without a value."""
    try:
        return variable._tensor
    except AttributeError:
        try:
            return variable._substitute
        except AttributeError:
            return None


def substitute(variable: Any) -> Any:
    """What stands for the present tensor; None where the slot has it, or the variable has no value."""
    try:
        return variable._substitute
    except AttributeError:
        return None


def borrowed_here(variable: Any) -> bool:
    """Whether compiled code in this thread has the tensor: the caller is a signal handler or finalizer."""
    try:
        return bool(variable._borrower == get_ident())
    except AttributeError:
        return False
