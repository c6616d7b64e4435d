"""Attribute values as text: literals as in Python, dtypes and shapes as in specs, elements of arrays.

==========================  ===================================================
value                       text
==========================  ===================================================
None, bool, int, float      as Python writes them; ``inf``, ``-inf`` and ``nan``
str, bytes                  Python's literals
tuple, list                 ``(1, (2, 3))``, ``(1,)``: read as a tuple
dtype                       ``float32``
shape                       ``[8, ?]``; of unknown rank ``[...]``
spec                        ``float32[8, ?]``
elements of a constant      ``[[0., 1.], [2., 3.]]``, a scalar without brackets
stored constant             ``@constants/0``
variable                    the name of the graph's input for it, ``%weight``
any other                   ``name(field=value, ...)`` by its syntax
==========================  ===================================================
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.attribute_values import syntax_of

Array = np.ndarray[Any, Any]
_PLAIN: Final = (type(None), bool, int, float, str, bytes)
INLINE: Final = 12
"""The largest number of elements of a constant that are printed one by one."""
_EDGE: Final = 2
_WORD: Final = re.compile(r"[^\s,:()=\"@#]+")


class NoText(Exception):
    """Raised for a value that can't be written as text and read back."""


def literal(value: Any, name_of: Callable[[Any], str | None]) -> str:
    """The text of an attribute's value; ``name_of`` returns the text for a variable.

    Raises:
        NoText: no text stands for the value.
    """
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind is Shape:
        return "[...]" if value is UNKNOWN_RANK else f"[{', '.join(map(_size, value))}]"
    if kind in (tuple, list):
        items = [literal(x, name_of) for x in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(value, DType):
        return value.name
    if kind is TensorSpec:
        return str(value)
    name = name_of(value)
    if name is not None:
        return name
    syntax = syntax_of(value)
    fields = None if syntax is None else syntax.fields(value)
    if syntax is None or fields is None:
        raise NoText(value)
    return f"{syntax.name}({', '.join([f'{key}={literal(x, name_of)}' for key, x in fields.items()])})"


def shown(value: Any) -> str:
    """A short description of a value for printing, if no text can represent the value."""
    return getattr(value, "__name__", None) or str(getattr(value, "name", None) or repr(value))


def elements(array: Array) -> str:
    """The elements of an array as text, with as few digits as needed; large arrays are abbreviated."""
    if array.dtype.hasobject:
        text = repr(array.tolist())
    else:
        text = np.array2string(
            array, threshold=INLINE, edgeitems=_EDGE, floatmode="unique", separator=", ", max_line_width=10**9
        )
    return " ".join(text.split())


def elements_exactly(array: Array) -> str | None:
    """The elements of a small array, if the text gives the same bits; else None."""
    if array.size > INLINE:
        return None
    text = elements(array)
    try:
        again = array_of(text, array.dtype, array.shape)
    except ValueError:
        return None
    same = again.tolist() == array.tolist() if array.dtype.hasobject else again.tobytes() == array.tobytes()
    return text if same else None


_ELEMENT: Final = re.compile(r"""\s*(b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*"|[^\s,\[\]]+)\s*""")


def array_of(text: str, dtype: np.dtype[Any], shape: Sequence[Any]) -> Array:
    """The array of a dtype and shape that ``text`` prints.

    Raises:
        ValueError: the text has other brackets than an array of this shape, or an element is invalid.
    """
    items: list[Any] = []
    pattern: list[str] = []
    position = 0
    while position < len(text):
        match = _ELEMENT.match(text, position)
        if match is None:
            if text[position] not in " ,[]":
                raise ValueError(f"{text[position]!r} is no element")
            pattern.append(text[position].strip())
            position += 1
            continue
        pattern.append("x")
        items.append(_element(match[1], dtype))
        position = match.end()
    if "".join(pattern) != _brackets(shape, len(pattern)):
        raise ValueError(f"the elements are not those of the shape {shape}")
    if dtype.hasobject:
        array = np.empty(len(items), object)
        array[:] = items
        return array.reshape(shape)
    with np.errstate(over="ignore"):
        return np.array(items, dtype).reshape(shape)


def _brackets(shape: Sequence[Any], longest: int) -> str:
    """The brackets and commas around the elements ``x`` of an array, if they fit into ``longest`` letters."""
    text = "x"
    for size in reversed(shape):
        if size * len(text) > longest:
            raise ValueError(f"the elements are fewer than those of the shape {shape}")
        text = f"[{','.join([text] * size)}]"
    return text


def _element(text: str, dtype: np.dtype[Any]) -> Any:
    if dtype.hasobject:
        return string(text)
    if dtype.kind == "b":
        if text not in ("True", "False"):
            raise ValueError(f"{text} is no bool")
        return text == "True"
    if dtype.kind in "iu":
        value = int(text)
        if not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise ValueError(f"{text} is outside of {dtype}")
        return value
    return complex(text) if dtype.kind == "c" else float(text)


def string(text: str) -> str | bytes:
    """The string or bytes that a Python literal denotes.

    Raises:
        ValueError: it is none.
    """
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"{text} is no string") from None
    if not isinstance(value, str | bytes):
        raise ValueError(f"{text} is no string")
    return value


def quoted(name: str) -> str:
    """The name of a value or graph as text; quoted as in Python if it has special characters."""
    if _WORD.fullmatch(name):
        return name
    escaped = name.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return f'"{escaped}"'


def _size(size: Any) -> str:
    return "?" if size is None else str(size)
