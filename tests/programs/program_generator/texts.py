"""An error's text must have the function as the user called it and the user's line, and no internals."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import dualflow as df
from dualflow.core.errors import DualflowError, InternalError, OperatorNotAllowedInGraphError

PACKAGE = str(Path(df.__file__).parent)
REFUSALS = (
    "give both one shape",
    "keeps a tensor of every",
    "the number of rows has to be known",
    "first size of elems",
    "k must be known",
    "assigned on some paths only",
    "before the loop, but shape (None",
    "memory_budget",
)
"""Texts of what compiled functions don't do yet where sizes are dynamic."""
PYTHONS = (
    "can't become a tensor; was a value forgotten",
    "NoneType",
    "object has no attribute",
    "unsupported operand type",
    "not subscriptable",
    "positional argument",
    "list index out of range",
    "not iterable",
)
"""Python's words for mistakes in our own code."""


def is_refusal(error: Exception) -> bool:
    """Whether the error is that compiled functions don't support something yet."""
    return isinstance(error, DualflowError) and any(text in str(error) for text in REFUSALS)


def fault_of_text(error: Exception, path: str, source: str, name: str | None = None) -> str | None:
    """What is wrong with an error that a user's program got; None if its text is fine.

    ``name`` is the function that the text has to name, where there is one.
    """
    text = f"{type(error).__name__}: {error}"
    if is_of_the_user(error, path, name):
        return None
    fault = fault_of_kind(error, path, name)
    if fault is not None:
        return fault
    for words in PYTHONS:
        if words in text:
            return f"{words!r} in {text}"
    if "broadcast_to(" in text and "broadcast_to(" not in source:
        return f"an op that the program does not call: {text}"
    if name is not None and name not in text and not says_why_itself(error, path):
        return f"{name} is not named: {text}"
    if not names_the_line(error, path) and not re.search(r"'(program|run)'", text):
        return f"no line of the user's: {text}\n{frames(error)}"
    return None


def fault_of_kind(error: Exception, path: str, name: str | None = None) -> str | None:
    """What is wrong with the class of an error that a user's program got; None for one that users may get."""
    if is_of_the_user(error, path, name):
        return None
    if isinstance(error, DualflowError) and not isinstance(error, InternalError):
        return None
    return f"not an error for users: {type(error).__name__}: {error}\n{frames(error)}"


def says_why_itself(error: Exception, path: str) -> bool:
    """Whether the error is of a symbol's Python value, or of sizes at run time, with the line."""
    return isinstance(error, OperatorNotAllowedInGraphError) or path in str(error)


def is_of_the_user(error: Exception, path: str, name: str | None) -> bool:
    """Whether Python itself refuses the user's line: an operator, or a wrong number of arguments."""
    if isinstance(error, DualflowError):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    arity = rf"{re.escape(name or '')}\(\) (missing|takes|got)"
    return last.filename == path or (
        isinstance(error, TypeError) and re.search(arity, str(error)) is not None
    )


def frames(error: Exception) -> str:
    return "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)[-4:]))


def names_the_line(error: Exception, path: str) -> bool:
    """Whether the text, a note or the traceback has a line of the user's file."""
    said = "\n".join([str(error), *getattr(error, "__notes__", ())])
    return bool(re.search(rf"{re.escape(path)}.*\d", said)) or any(
        frame.filename == path for frame in traceback.extract_tb(error.__traceback__)
    )
