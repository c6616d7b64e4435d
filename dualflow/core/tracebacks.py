"""Tracebacks without dualflow's own frames, which are removed when an error leaves dualflow.

Each function that users call ends with::

    except Exception as error:
        hide_frames(error)
        raise

A ``try`` costs nothing in a call that succeeds, and a bare ``raise`` adds no frame of its own.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from types import FunctionType, TracebackType
from typing import Any, Final, TypeVar

import numpy as np

from dualflow.core.api_dispatch import ACTIVE, by_rule, dispatched, dispatches
from dualflow.core.composite_rules import CompositeError
from dualflow.core.defer_slot import DEFER
from dualflow.core.errors import DualflowError, InternalError
from dualflow.core.own_files import OWN_FILES

F = TypeVar("F", bound=Callable[..., Any])

PROGRAM: Final = "<dualflow program"
"""The beginning of the file name of programs that are compiled from text."""
_OURS: Final = (*OWN_FILES, PROGRAM)
USER_CODE: Final = "in user code:"
"""The beginning of a note that lists the user's lines which led to an error."""
_STANDARD: Final = os.path.dirname(os.path.abspath(functools.__file__)) + os.sep
_NUMPY: Final = os.path.dirname(os.path.abspath(np.__file__)) + os.sep


class _Filtering:
    """Whether tracebacks are filtered."""

    __slots__ = ("enabled",)

    def __init__(self) -> None:
        self.enabled = True


_OPS: Final = f"{__name__.partition('.')[0]}.ops."
_filtering: Final = _Filtering()


def enable_traceback_filtering() -> None:
    """Show only the user's frames in tracebacks of errors, which is the default.

    Errors due to defects of dualflow (:class:`~dualflow.errors.InternalError`, and built-in errors that its
    own code raises by mistake) keep all frames.

    >>> import dualflow as df
    >>> df.debugging.enable_traceback_filtering()
    >>> df.debugging.is_traceback_filtering_enabled()
    True
    """
    _filtering.enabled = True


def disable_traceback_filtering() -> None:
    """Show dualflow's frames in tracebacks as well, for debugging dualflow itself.

    >>> import dualflow as df
    >>> df.debugging.disable_traceback_filtering()
    >>> df.debugging.is_traceback_filtering_enabled()
    False
    >>> df.debugging.enable_traceback_filtering()
    """
    _filtering.enabled = False


def is_traceback_filtering_enabled() -> bool:
    """Whether tracebacks hide dualflow's frames."""
    return _filtering.enabled


def hide_frames(error: Exception) -> None:
    """Remove dualflow's frames from the traceback of ``error``.

    Errors that dualflow itself was handling when it raised this one are removed as well: the message
    includes their content.
    """
    if not _filtering.enabled or isinstance(error, InternalError):
        return
    frames = _frames(error.__traceback__)
    raised_here = bool(frames) and frames[-1][1]
    if raised_here and not isinstance(error, DualflowError):
        return  # raised by mistake: all frames are needed to find the reason
    error.__traceback__ = _linked([tb for tb, ours in frames if not ours])
    if raised_here:
        context = error.__cause__ or error.__context__
        while context is not None and all(ours for _, ours in _frames(context.__traceback__, ours=True)):
            context = context.__context__
        error.__cause__ = None
        error.__context__ = context
        error.__suppress_context__ = context is None


def _frames(start: TracebackType | None, ours: bool = False) -> list[tuple[TracebackType, bool]]:
    """The entries of a traceback, outermost first, and whether each is of dualflow or a library it called.

    ``ours`` is whether dualflow called the first one.
    """
    entries = []
    while start is not None:
        file = start.tb_frame.f_code.co_filename
        ours = file.startswith(_OURS) or (ours and _is_library(file))
        entries.append((start, ours))
        start = start.tb_next
    return entries


def _is_library(file: str) -> bool:
    """Whether a file belongs to NumPy, to Python's library, or to its import system (a frozen module)."""
    standard = file.startswith(_STANDARD) and "site-packages" not in file
    return standard or file.startswith((_NUMPY, "<frozen importlib"))


def _linked(entries: list[TracebackType]) -> TracebackType | None:
    """The entries linked to one traceback."""
    following: TracebackType | None = None
    for tb in reversed(entries):
        following = TracebackType(following, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return following


class _SignatureOf(inspect.Signature):
    """The signature of a function, computed when it is first read: Python takes 60 us for one.

    ``inspect.getfullargspec`` reads the ``__signature__`` of a wrapper, but does not follow ``__wrapped__``.
    """

    __slots__ = ("_function",)
    _function: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        if name not in ("_parameters", "_return_annotation"):
            raise AttributeError(name)
        signature = inspect.signature(self._function)  # several threads may compute it
        super().__init__(list(signature.parameters.values()), return_annotation=signature.return_annotation)
        return getattr(self, name)


def _with_signature(wrapper: Callable[..., Any], function: Callable[..., Any]) -> None:
    """Give a wrapper the signature of the function that it calls."""
    signature = _SignatureOf.__new__(_SignatureOf)
    signature._function = function
    wrapper.__signature__ = signature  # type: ignore[attr-defined]  # which inspect reads


def entry(owner: F) -> F:
    """Decorate a function, or all public methods of a class, to hide dualflow's frames in tracebacks.

    The message of an error that leaves dualflow begins with the name of the op's function.

    A call costs 0.07 us more. If that matters, a function has the three lines itself, and isn't wrapped.
    """
    if isinstance(owner, type):
        for name, value in list(vars(owner).items()):
            if isinstance(value, FunctionType) and not name.startswith("_") and not _hides(value):
                setattr(owner, name, entry(value))
        return owner
    is_op = str(owner.__module__).startswith(_OPS) and owner.__qualname__ == owner.__name__

    @functools.wraps(owner)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return owner(*args, **kwargs)
        except Exception as error:
            if is_op:
                hide_frames_of(owner, error)
            else:
                hide_frames(error)
            raise

    _with_signature(call, owner)
    return call  # type: ignore[return-value]  # of the same signature


def op_entry(function: F) -> F:
    """:func:`entry` for functions of ops: in a trace, a failed call may be deferred until sizes are known.

    Errors that leave dualflow name the function. A call with a composite, such as a ragged tensor, runs the
    function's rule for composites, if it has one, or what the program has registered for it.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if ACTIVE and (target := dispatched(function, args, kwargs)) is not None:
                return target()
            try:
                return function(*args, **kwargs)
            except (CompositeError, AttributeError) as error:
                return by_rule(function, args, kwargs, error)
        except Exception as error:
            deferred = DEFER.value(function, args, kwargs, error)
            if deferred is not None:
                return deferred
            hide_frames_of(function, error)
            raise

    _with_signature(call, function)
    return dispatches(call)  # type: ignore[return-value]  # of the same signature


def hide_frames_of(function: Callable[..., Any], error: Exception) -> None:
    """:func:`hide_frames` for a function of ops, which catches ``error`` and is named in it for user code.

    A traceback begins at the frame that catches the error: the one before it called the function.
    """
    start = error.__traceback__
    caller = start.tb_frame.f_back if start is not None else None
    if caller is not None and not caller.f_code.co_filename.startswith(_OURS):
        prefix_message(error, function)
    hide_frames(error)


def prefix_message(error: Exception, function: Callable[..., Any]) -> None:
    """Put the name of ``function`` at the start of the message of ``error``, if dualflow raised it.

    Gradient rules are not named, since their names aren't public.
    """
    name = public_name(function)
    if isinstance(error, DualflowError) and name is not None and name not in error.message:
        error.args = (f"{name}: {error.message}", *error.args[1:])


def public_name(function: Callable[..., Any]) -> str | None:
    """The name of a function that users call; None for a rule of gradients or another private function."""
    name: str = getattr(function, "__name__", "_")
    return name if name.isidentifier() and name[0] != "_" else None


def make_entries(namespace: dict[str, Any], *, with_name: bool = False) -> None:
    """Wrap the public functions that a module defines by :func:`op_entry`.

    Those that hide frames themselves stay.

    Args:
        namespace: the module's ``globals()``, complete.
        with_name: whether to wrap only functions with a parameter ``name``: of a module of ops these are the
            functions for users.
    """
    for name, value in list(namespace.items()):
        is_defined_here = isinstance(value, FunctionType) and value.__module__ == namespace["__name__"]
        if (
            is_defined_here
            and not name.startswith("_")
            and not _hides(value)
            and (not with_name or _has_name(value))
        ):
            namespace[name] = op_entry(value)


def _has_name(function: FunctionType) -> bool:
    """Whether ``name`` is a parameter that names the op: not the first of several, which is an input."""
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return "name" in parameters[1:] or parameters == ("name",)


def _hides(function: FunctionType) -> bool:
    return not {hide_frames.__name__, hide_frames_of.__name__}.isdisjoint(function.__code__.co_names)
