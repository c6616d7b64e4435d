"""Scalars as C expressions, and the lines that compute them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.scalar.text_maths import SourceLines, TextValue, wrapped_integer


def type_name(dtype: DType) -> str:
    """The short name of a numeric dtype, for function names: ``f32``, ``u8``, ``bool``.

    >>> from dualflow.core.dtypes import bool_, complex64, float32
    >>> type_name(float32), type_name(bool_), type_name(complex64)
    ('f32', 'bool', 'c64')
    """
    return "bool" if dtype.is_bool else f"{dtype.kind}{8 * dtype.size}"


def c_type(dtype: DType) -> str:
    """The C type of an element; that of float16 holds its bits, for kernels that only move and cast it.

    >>> from dualflow.core.dtypes import bool_, complex64, uint8
    >>> c_type(uint8), c_type(bool_), c_type(complex64)
    ('uint8_t', 'bool', 'float _Complex')
    """
    if dtype.is_complex:
        return "float _Complex" if dtype.size == 8 else "double _Complex"
    if dtype.is_floating:
        return {2: "uint16_t", 4: "float", 8: "double"}[dtype.size]
    return "bool" if dtype.is_bool else f"{'u' if dtype.is_unsigned else ''}int{8 * dtype.size}_t"


def literal(number: complex, dtype: DType) -> str:
    """A number as a C expression of the type of ``dtype``: floats round to nearest, integers wrap.

    >>> from dualflow.core.dtypes import float32, int64, uint8
    >>> literal(0.1, float32), literal(-1, uint8), literal(-(2**63), int64)
    ('0.1f', '255', 'INT64_MIN')
    """
    if dtype.is_bool:
        return "true" if number else "false"
    if dtype.is_complex:
        part = "f" if dtype.size == 8 else ""
        parts = [_float(np.float32(x) if part else np.float64(x), part) for x in _parts(number)]
        return f"df_complex_c{8 * dtype.size}({', '.join(parts)})"
    assert not isinstance(number, complex)
    if dtype.is_floating:
        return _float(dtype.dtype.type(number), "f" if dtype.size == 4 else "")
    size, value = 8 * dtype.size, wrapped_integer(number, dtype)
    if value == -(1 << (size - 1)) and size >= 32:
        return f"INT{size}_MIN"
    suffix = "u" if dtype.is_unsigned and size >= 32 else ""
    return f"{value}{suffix}" if size < 64 else f"{'U' if suffix else ''}INT64_C({value})"


def c_string(text: str) -> str:
    """A string as a C literal.

    >>> c_string('a "b"') == chr(34) + 'a ' + chr(92) + chr(34) + 'b' + chr(92) + chr(34) + chr(34)
    True
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("?", "\\?")
    return f'"{escaped}"'


def _parts(number: complex) -> tuple[float, float]:
    z = complex(number)
    return z.real, z.imag


def _float(number: np.floating, suffix: str) -> str:
    if math.isnan(number):
        return "(float)NAN" if suffix else "(double)NAN"
    if math.isinf(number):
        name = "(float)INFINITY" if suffix else "(double)INFINITY"
        return f"(-{name})" if number < 0 else name
    text = str(number)
    text = text if "." in text or "e" in text else f"{text}.0"
    return f"({text}{suffix})" if text.startswith("-") else f"{text}{suffix}"


WORD: Final = re.compile(r"\b[A-Za-z_]\w*\b")
"""An identifier or keyword."""
_DECLARED: Final = re.compile(r" *(?:const )?(?:u?int\d+_t|int|bool|(?:float|double)(?: _Complex)?) (\w+) = ")


MARK: Final = "written by dualflow"
"""Marks exported files, in their first line: files with it may be overwritten."""


class CValue(NamedTuple):
    """A C expression of a dtype: a name or a constant, so that repeating it costs nothing."""

    text: str
    dtype: DType


class CLines(SourceLines):
    """C lines under construction."""

    def declare(self, dtype: DType, text: str) -> CValue:
        """Append the declaration of a temporary with the value ``text``."""
        name = self.name()
        self.add(f"const {c_type(dtype)} {name} = {text};")
        return CValue(name, dtype)

    def definition_head(self, value: TextValue, name: str) -> str:
        return f"const {c_type(value.dtype)} {name} = "

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A context that adds a block in braces after ``head``."""
        self.add(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.add("}")


def without_unused(lines: Sequence[str]) -> list[str]:
    """The lines without declarations of constants that no other line reads.

    >>> without_unused(["const int a = 1;", "const int b = a;", "x[0] = 2;"])
    ['x[0] = 2;']
    """
    read: dict[int, set[str]] = {}
    kept: list[str] = []
    for line in reversed(lines):
        depth = len(line) - len(line.lstrip())
        for inner in [d for d in read if d > depth]:
            read.setdefault(depth, set()).update(read.pop(inner))
        names, declared = read.setdefault(depth, set()), _DECLARED.match(line)
        if declared is not None:
            if declared[1] not in names:
                continue
            names.discard(declared[1])
            line_words = WORD.findall(line[declared.end() :])
        else:
            line_words = WORD.findall(line)
        names.update(line_words)
        kept.append(line)
    return kept[::-1]
