"""Converts functions for tracing, and adds the user's lines to their errors."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from dualflow.core import dispatch
from dualflow.core.errors import DualflowError, OperatorNotAllowedInGraphError
from dualflow.core.locks import imported
from dualflow.core.own_files import OWN_FILES
from dualflow.core.tracebacks import USER_CODE
from dualflow.function.autograph.callees import NotConverted
from dualflow.function.autograph.do_not_convert import runs_unconverted
from dualflow.function.autograph.nodes import is_converted
from dualflow.function.autograph.plain_functions import is_plain
from dualflow.function.bound_method import WeakMethod
from dualflow.function.control.graph_exceptions import trace_boundary
from dualflow.function.errors import RecursiveTraceError, SymbolicValueError
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.ir import Origin


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with control flow that also takes symbolic tensors; unconverted if that is impossible."""
    try:
        return must_convert(function)
    except NotConverted as reason:
        return _Unconverted(function, str(reason))


def must_convert(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with control flow that also takes symbolic tensors; NotConverted if that is impossible."""
    return _Converted(_convert(function))


def _convert(function: Any) -> Callable[..., Any]:
    if isinstance(function, WeakMethod):
        return function.with_function(_convert)
    if isinstance(function, MethodType):
        return MethodType(_convert(function.__func__), function.__self__)
    if isinstance(function, FunctionType) and (runs_unconverted(function) or is_plain(function)):
        return function
    compilation = imported("dualflow.function.autograph.compilation")
    convert = compilation.convert if isinstance(function, FunctionType) else compilation.callee
    result: Callable[..., Any] = convert(function)
    return result


class _Converted:
    """A converted function, whose errors name the user's lines."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            with trace_boundary():
                return self._function(*args, **kwargs)
            return None
        except RecursiveTraceError:
            raise
        except RecursionError as error:
            recursive = RecursiveTraceError(
                "A function that calls itself under a condition that is a tensor is traced without end, "
                "since all branches are. Let a Python number count down, or write the recursion as a loop. A "
                "finite recursion may need a higher sys.setrecursionlimit."
            )
            _add_lines(recursive, error)
            raise recursive from None
        except NameError as error:
            unbound = _as_unbound_local(error)
            if unbound is not None:
                raise unbound.with_traceback(error.__traceback__) from None
            _add_lines(error, error)
            raise
        except Exception as error:
            _add_lines(error, error)
            raise


class _Unconverted:
    """A function that can't be converted, whose trace ends with an error if it tests a tensor.

    The error is raised again if the user's code has caught it: a trace that continued after an ``except``
    clause would compute something else than the function.
    """

    __slots__ = ("_function", "_reason")

    def __init__(self, function: Callable[..., Any], reason: str) -> None:
        self._function = function
        self._reason = reason

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            result = self._function(*args, **kwargs)
            tracer = dispatch.current().innermost
            if isinstance(tracer, Tracer) and tracer.refusal is not None:
                raise tracer.refusal
            return result
        except SymbolicValueError:
            raise  # NumPy can't be converted
        except OperatorNotAllowedInGraphError as error:
            error.add_note(
                f"The function was not converted: {self._reason}. Define it in a file, or choose with "
                "df.cond and df.where and loop with df.while_loop."
            )
            raise


def _as_unbound_local(error: NameError) -> UnboundLocalError | None:
    """The UnboundLocalError for a variable that a generated function read before assignment; else None.

    A local variable of a converted function is a free variable of its branches and loop bodies.
    """
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    code, name = codes[-1], error.name
    if type(error) is not NameError or not is_converted(code) or name not in code.co_freevars:
        return None
    user_codes = [c for c in codes if (c.co_qualname, c.co_filename) == (code.co_qualname, code.co_filename)]
    if not any(name in c.co_cellvars for c in user_codes):
        return None
    return UnboundLocalError(f"cannot access local variable {name!r} where it is not associated with a value")


def _add_lines(error: Exception, raised: Exception) -> None:
    """Add a note with the user's lines in the traceback of ``raised``, each once, in the order of the calls.

    An error that the user's code has raised has them in its own traceback.
    """
    if any(note.startswith(USER_CODE) for note in getattr(error, "__notes__", ())):
        return
    frames = list(traceback.walk_tb(raised.__traceback__))
    if not isinstance(error, DualflowError) and is_converted(frames[-1][0].f_code):
        return
    locations = dict.fromkeys(
        Origin(frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in frames
        if is_converted(frame.f_code) and not frame.f_code.co_filename.startswith(OWN_FILES)
    )
    lines = [
        f"  {location}\n    {linecache.getline(location.file, location.line).strip()}"
        for location in locations
    ]
    if lines:
        error.add_note("\n".join([USER_CODE, *lines]))
