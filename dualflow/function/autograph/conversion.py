"""When a function is converted, and what its errors say of the user's lines."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.core.tracebacks import USER_CODE
from dualflow.function.autograph.needs_conversion import needs_conversion
from dualflow.function.control.raising import whole
from dualflow.function.errors import RecursiveTraceError
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.origin import original


class Converted:
    """A converted function, whose errors name the user's lines."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            with whole():
                return self._function(*args, **kwargs)
            return None
        except RecursiveTraceError:
            raise
        except RecursionError as error:
            endless = RecursiveTraceError(
                "A function that calls itself under a condition that is a tensor is traced without end, "
                "since all branches are. Let a Python number count down, or write the recursion as a loop."
            )
            _add_lines(endless, error)
            raise endless from None
        except Exception as error:
            _add_lines(error, error)
            raise


def as_written(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, for a trace that is to end where a tensor stands in the place of a value.

    It raises the error about that also where the user's code has caught it: a trace that goes on from an
    ``except`` clause would be of another program.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        tracer = dispatch.current().innermost
        if isinstance(tracer, Tracer) and tracer.refusal is not None:
            raise tracer.refusal
        return result

    return run


def converted_early(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Converted | None:
    """``function`` converted if its source doesn't show that, called so, it looks into no tensor."""
    if not needs_conversion(function, args, kwargs):
        return None
    try:
        return _convert(function)
    except InvalidArgumentError:
        return None


def converted(function: Callable[..., Any], error: Exception) -> Converted:
    """``function`` with control flow that takes symbols, after tracing it as it is raised ``error``.

    Raises:
        Exception: ``error``, with the reason as a note, if it can't be converted.
    """
    try:
        return _convert(function)
    except InvalidArgumentError as refusal:
        reason = str(refusal)
    error.add_note(
        f"The function was not converted: {reason}. Define it in a file, or choose with df.cond and "
        "df.where and loop with df.while_loop."
    )
    raise error  # out here the converter's own errors are not its context


def _convert(function: Callable[..., Any]) -> Converted:
    converter = imported("dualflow.function.autograph.malt_conversion")  # imports malt, which takes a while
    return Converted(converter.convert(function))


def _add_lines(error: Exception, raised: Exception) -> None:
    """Note the user's lines that led to ``raised``, each once, in the order of the calls."""
    if any(note.startswith(USER_CODE) for note in getattr(error, "__notes__", ())):
        return
    frames = traceback.walk_tb(raised.__traceback__)
    places = dict.fromkeys(original(frame.f_code.co_filename, line) for frame, line in frames)
    lines = [
        f"  {place}\n    {linecache.getline(place.file, place.line).strip()}" for place in places if place
    ]
    if lines:
        error.add_note("\n".join([USER_CODE, *lines]))
