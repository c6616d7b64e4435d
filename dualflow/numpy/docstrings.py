"""Parts of docstrings that NumPy's functions share: their common arguments, and the errors of these.

A docstring in the source describes what is special to its function. :func:`complete_docstrings` adds the
arguments that it leaves out, in the order of the signature, and the errors that follow from the signature.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any, Final

from dualflow.ops.docstrings import dedented

VALUES: Final = "a tensor, an array, a number or nested lists of them, of any shape."
_VALUE_NAMES: Final = ("a", "x", "arr", "ary", "m", "a1", "a2", "x1", "x2", "ar1", "ar2", "b", "y", "p")
ARGUMENTS: Final[dict[str, str]] = {
    **dict.fromkeys(_VALUE_NAMES, VALUES),
    "axes": "the axes, an integer each; negative ones count from the end.",
    "axis": "the axis; a negative one counts from the end.",
    "copy": "ignored: tensors don't change.",
    "device": "ignored: the CPU is the only device.",
    "dtype": "the dtype of the result.",
    "keepdims": "whether the reduced axes stay, with size 1.",
    "kind": "ignored: sorting is always stable.",
    "like": "must be None; results are tensors.",
    "order": "ignored: elements are in C's order.",
    "out": "must be None; tensors don't change.",
    "overwrite_input": "must be False; tensors don't change.",
    "subok": "ignored: there are no subclasses.",
}
"""Descriptions of arguments that have one meaning in most functions."""
_REFUSED: Final = ("like", "out", "overwrite_input")
"""Arguments that raise an error if they are used."""
_TITLES: Final = ("Args", "Returns", "Raises")
_DTYPE_ERROR: Final = "DTypeError"
_WIDTH: Final = 106
_EXAMPLE: Final = ">>> import dualflow"


def complete_docstrings(
    namespace: dict[str, Any], dtype_error: str = "can't become a tensor", /, **descriptions: str
) -> None:
    """Complete the docstrings of the public functions that a module defines.

    Args:
        namespace: the module's ``globals()``, complete.
        dtype_error: the text of the entry DTypeError: what is wrong with a value.
        **descriptions: the module's own descriptions of arguments; they replace those of :data:`ARGUMENTS`.
    """
    texts = {**ARGUMENTS, **descriptions}
    for name, value in namespace.items():
        is_public = isinstance(value, FunctionType) and value.__module__ == namespace["__name__"]
        if is_public and not name.startswith("_") and value.__doc__:  # python -OO removes docstrings
            value.__doc__ = _complete(value, value.__doc__, texts, dtype_error)


def _complete(function: FunctionType, doc: str, texts: dict[str, str], dtype_error: str) -> str:
    """A docstring with all arguments, and the errors that follow from them."""
    text = dedented(doc)
    head, start, example = text.partition(_EXAMPLE)
    prose, sections = [], {}
    for paragraph in head.strip().split("\n\n"):
        title, _, body = paragraph.partition(":\n")
        if title in _TITLES:
            sections[title] = _entries(body) if title != "Returns" else {"": body}
        else:
            prose.append(paragraph)
    parameters = list(_parameters(function))
    described = sections.get("Args", {})
    lines = [
        _entry(name, _with_default(described.get(name.lstrip("*")) or texts.get(name, ""), default))
        for name, default in parameters
    ]
    parts = [*prose, "\n".join(["Args:", *[line for line in lines if line]]) if lines else ""]
    if "Returns" in sections:
        parts.append(f"Returns:\n{sections['Returns']['']}")
    errors = sections.get("Raises", {})
    if "Raises nothing." not in prose:
        _add_errors(errors, [name for name, _ in parameters], dtype_error)
    if errors:
        parts.append("\n".join(["Raises:", *[_entry(name, text) for name, text in errors.items()]]))
    return "\n\n".join([part for part in parts if part]) + "\n\n" + start + example.rstrip() + "\n"


def _entries(body: str) -> dict[str, str]:
    """The entries of a section, by name: lines of four spaces, a name, a colon and text."""
    entries: dict[str, str] = {}
    name = ""
    for line in body.splitlines():
        if line.startswith("     "):
            entries[name] += f" {line.strip()}"
        else:
            name, _, text = line.strip().partition(": ")
            name = name.lstrip("*")
            entries[name] = text
    return entries


def _entry(name: str, text: str) -> str:
    line = f"    {name}: {text}"
    if len(line) <= _WIDTH:  # most are; wrapping takes time
        return line if text else ""
    return textwrap.fill(line, _WIDTH, subsequent_indent=" " * 8)


def _with_default(text: str, default: Any) -> str:
    """A description that states the default, if it is a number, a bool or a string."""
    if not text or default is None or "default" in text or not isinstance(default, bool | int | float | str):
        return text
    return f"{text.removesuffix('.')}; {default!r} by default."


def _parameters(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The names of a function's parameters, with stars, in order, each with its default or None."""
    code = function.__code__
    number = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames
    positional = names[: code.co_argcount]
    defaults = function.__defaults__ or ()
    values = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    values |= function.__kwdefaults__ or {}
    has_star = bool(code.co_flags & inspect.CO_VARARGS)
    yield from ((name, values.get(name)) for name in positional)
    if has_star:
        yield f"*{names[number]}", None
    yield from ((name, values.get(name)) for name in names[code.co_argcount : number])
    if code.co_flags & inspect.CO_VARKEYWORDS:
        yield f"**{names[number + has_star]}", None


def _add_errors(errors: dict[str, str], names: list[str], dtype_error: str) -> None:
    """Add the errors that follow from a function's parameters to those of its docstring."""
    added = {_DTYPE_ERROR: [], "InvalidArgumentError": []}  # type: dict[str, list[str]]
    values = [f"``{name}``" for name in names if name in _VALUE_NAMES]
    if values:
        added[_DTYPE_ERROR].append(f"{' or '.join(values)} {dtype_error}")
    added[_DTYPE_ERROR] += [f"``{name}`` is passed" for name in names if name in _REFUSED]
    if "dtype" in names:
        added[_DTYPE_ERROR].append("``dtype`` is no dtype that tensors have")
    if "axis" in names:
        added["InvalidArgumentError"].append("``axis`` is out of range")
    for error, texts in added.items():
        reason = [errors[error].removesuffix(".")] if error in errors else []
        if reason or texts:
            errors[error] = "; ".join([*reason, *texts]) + "."
