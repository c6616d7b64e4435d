"""The source lines of compiled code, if Python has them."""

from __future__ import annotations
import __future__

import inspect
import linecache
from types import CellType, CodeType, FunctionType
from typing import Any, Final

_SHARED_NAMES: Final = ("<string>", "<stdin>")
_FUTURES: Final = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def source_lines(code: CodeType, namespace: dict[str, Any]) -> list[str]:
    """The lines of the file or program that ``code`` is part of; empty if they can't be found.

    Python 3.13 and later keep the program of ``python -c`` and of a prompt, under a file name that code from
    ``exec`` may have as well: source under such a name is compared with the code.

    Args:
        code: the code object of a function or frame.
        namespace: its globals, which have the loader of a module without a file.

    >>> names = {}
    >>> exec("def f(x): return x", names)
    >>> source_lines(names["f"].__code__, names)
    []
    """
    lines = linecache.getlines(code.co_filename, namespace)
    if not lines:
        function = FunctionType(code, namespace, closure=tuple([CellType() for _ in code.co_freevars]))
        try:
            lines, _ = inspect.findsource(function)  # reads sources that Python keeps by function
        except (OSError, IndexError):
            return []
    return lines if code.co_filename not in _SHARED_NAMES or _is_of(code, "".join(lines)) else []


def _is_of(code: CodeType, source: str) -> bool:
    """Whether ``source`` compiles to this code."""
    try:
        flags = code.co_flags & _FUTURES
        pending = [compile(source, code.co_filename, "exec", flags, dont_inherit=True)]
    except (SyntaxError, ValueError):
        return False
    while pending:
        at = pending.pop()
        if at == code:
            return True
        pending += [constant for constant in at.co_consts if isinstance(constant, CodeType)]
    return False
