"""Advice in errors about NumPy functions that are called on symbolic tensors: the function to use instead."""

from __future__ import annotations

import ast
import os
import sys
from importlib import import_module
from types import CodeType, FrameType
from typing import Any, Final

import numpy as np

from dualflow.core.code_lines import source_lines
from dualflow.core.own_files import OWN_FILES
from dualflow.ops.record import REGISTRY

_NUMPY: Final = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_MODULE: Final = __name__.partition(".")[0]
_NEXT_BEST: Final = "hand the values to NumPy with df.numpy_function"


def instead_of_call(frame: FrameType | None) -> str:
    """The advice for the NumPy function that runs in ``frame``, or is called from there."""
    name = _numpy_function_on_stack(frame)
    if name is None:
        return f"use df's functions, or {_NEXT_BEST}"
    advice = replacement(name)
    return f"instead of np.{name} {advice or _NEXT_BEST}" + (", or df.numpy_function" if advice else "")


def replacement(name: str) -> str | None:
    """The advice for a function or method of NumPy by its name: "use df.reduce_sum"; None if there is none.

    >>> replacement("sum"), replacement("absolute"), replacement("percentile")
    ('use df.reduce_sum', 'use df.abs', None)
    """
    public = vars(sys.modules[_MODULE])
    if name in public:
        return f"use df.{name}"
    same = [op.name for op in REGISTRY.values() if op.kernel is getattr(np, name, None)]
    if same and same[0] in public:
        return f"use df.{same[0]}"
    explain = import_module("dualflow.core.absent").explain
    _, _, advice = explain(_MODULE, name, []).partition(": ")
    return advice.removesuffix(".") if advice.startswith("use ") else None


def _numpy_function_on_stack(frame: FrameType | None) -> str | None:
    """The name of the outermost NumPy function on the call stack, or in the source line.

    None if there is none.
    """
    name: str | None = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_NUMPY):
            name = frame.f_code.co_name
        elif not file.startswith(OWN_FILES):
            return name or _called_function(frame)
        elif name is None:
            name = _name_of(frame.f_locals.get("function"))  # converted code calls through this package
        frame = frame.f_back
    return name


def _name_of(function: Any) -> str | None:
    module = getattr(function, "__module__", None) or type(function).__module__
    return getattr(function, "__name__", None) if module.partition(".")[0] == "numpy" else None


def _called_function(frame: FrameType) -> str | None:
    """The name of the function that a line of Python is calling."""
    position = _position(frame.f_code, frame.f_lasti)
    if position is None:
        return None
    line, end_line, column, end_column = position
    source = source_lines(frame.f_code, frame.f_globals)
    lines = [text.encode() for text in source[line - 1 : end_line]]
    if not lines:
        return None
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    try:
        called = ast.parse(b"".join(lines), mode="eval").body
    except SyntaxError:
        return None
    function = called.func if isinstance(called, ast.Call) else None
    if isinstance(function, ast.Name):
        names = {**frame.f_globals, **frame.f_locals}
        return _name_of(names.get(function.id)) or function.id
    return function.attr if isinstance(function, ast.Attribute) else None


def _position(code: CodeType, instruction: int) -> tuple[int, int, int, int] | None:
    """The lines and columns that an instruction comes from."""
    for i, (line, end_line, column, end_column) in enumerate(code.co_positions()):
        if 2 * i == instruction:
            has_lines = line is not None and end_line is not None
            if has_lines and column is not None and end_column is not None:
                return line, end_line, column, end_column  # type: ignore[return-value]  # no None is left
    return None
