"""When a function is converted, and what its errors say of the user's lines."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.function.errors import RecursiveTraceError
from dualflow.graph.origin import original

_HEADING: Final = "in user code:"


class Converted:
    """A converted function, whose errors name the user's lines."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
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


def converted(function: Callable[..., Any], error: Exception) -> Converted:
    """``function`` with control flow that takes symbols, after tracing it as it is raised ``error``.

    Raises:
        Exception: ``error``, with the reason as a note, if it can't be converted.
    """
    converter = import_module("dualflow.function.autograph.convert")  # imports malt, which takes a while
    try:
        return Converted(converter.convert(function))
    except InvalidArgumentError as reason:
        error.add_note(
            f"The function was not converted: {reason}. Define it in a file, or choose with df.cond and "
            "df.where and loop with df.while_loop."
        )
        raise error from None


def _add_lines(error: Exception, raised: Exception) -> None:
    """Note the user's lines that led to ``raised``, each once, in the order of the calls."""
    if any(note.startswith(_HEADING) for note in getattr(error, "__notes__", ())):
        return
    frames = traceback.walk_tb(raised.__traceback__)
    places = dict.fromkeys(original(frame.f_code.co_filename, line) for frame, line in frames)
    lines = [
        f"  {place}\n    {linecache.getline(place.file, place.line).strip()}" for place in places if place
    ]
    if lines:
        error.add_note("\n".join([_HEADING, *lines]))
