"""Support functions of exported programs: ``static inline`` functions, each written if it is called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dualflow.backends.c.source_lines import CLines, c_type, type_name
from dualflow.core.dtypes import (
    DType,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from dualflow.core.records import dataclass, field

_REALS: Final = (float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64)


_REVERSED: Final = str.maketrans("<>", "><")


def _extreme(name: str, symbol: str, dtype: DType) -> str:
    c = c_type(dtype)
    condition = (
        f"(!(x {symbol.translate(_REVERSED)}= y) & (y == y))" if dtype.is_floating else f"x {symbol} y"
    )
    return f"""\
static inline {c} df_{name}_{type_name(dtype)}({c} x, {c} y)
{{
    return {condition} ? x : y;
}}
"""


def _multiply_add(dtype: DType) -> str:
    c, suffix = c_type(dtype), "f" if dtype is float32 else ""
    return f"""\
/* x * y + z, rounded once by processors that have an instruction for it. */
static inline {c} df_multiply_add_{type_name(dtype)}({c} x, {c} y, {c} z)
{{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fma{suffix}(x, y, z);
#else
    return x * y + z;
#endif
}}
"""


def _complex(dtype: DType) -> str:
    c, part = c_type(dtype), "float" if dtype is complex64 else "double"
    return f"""\
static inline {c} df_complex_{type_name(dtype)}({part} re, {part} im)
{{
    const {part} parts[2] = {{re, im}};
    {c} z;
    memcpy(&z, parts, sizeof z);
    return z;
}}
"""


_PRIMITIVES: Final = {
    **{f"maximum_{type_name(d)}": _extreme("maximum", ">", d) for d in _REALS},
    **{f"minimum_{type_name(d)}": _extreme("minimum", "<", d) for d in _REALS},
    **{f"multiply_add_{type_name(d)}": _multiply_add(d) for d in (float32, float64)},
    **{f"complex_{type_name(d)}": _complex(d) for d in (complex64, complex128)},
}


@dataclass(slots=True)
class CSupport:
    """The support functions that a file calls, each after those that it calls itself."""

    _functions: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, text: str) -> str:
        """Add the function ``name``, unless it is written; returns the name."""
        self._functions.setdefault(name, text)
        return name

    def primitive(self, name: str) -> str:
        """The name in C of a function of :data:`_PRIMITIVES`."""
        return self.add(f"df_{name}", _PRIMITIVES[name])

    def bits(self, source: DType, target: DType) -> str:
        """The name in C of the function that reads the bits of ``source`` as ``target``."""
        name = f"df_{type_name(source)}_as_{type_name(target)}"
        text = f"""\
static inline {c_type(target)} {name}({c_type(source)} x)
{{
    {c_type(target)} y;
    memcpy(&y, &x, sizeof y);
    return y;
}}
"""
        return self.add(name, text)

    def saturated(self, source: DType, target: DType) -> str:
        """The name in C of the conversion of a float to the nearest integer in range; NaN is 0."""
        name, c = f"df_{type_name(source)}_to_{type_name(target)}", c_type(target)
        most, suffix = c.removesuffix("_t").upper() + "_MAX", "f" if source is float32 else ""
        bits = 8 * target.size - (not target.is_unsigned)
        least = "0" if target.is_unsigned else c.removesuffix("_t").upper() + "_MIN"
        above, below = f"0x1p{bits}{suffix}", f"0.0{suffix}" if target.is_unsigned else f"-0x1p{bits}{suffix}"
        text = f"""\
static inline {c} {name}({c_type(source)} x)
{{
    const bool inside = x > {below} && x < {above};
    const {c} y = ({c})(inside ? x : 0.0{suffix});
    return x >= {above} ? {most} : x <= {below} ? {least} : y;
}}
"""
        return self.add(name, text)

    def integer_power(self, dtype: DType, unsigned: DType) -> str:
        """The name in C of ``x**y`` for integers, by repeated squaring; the exponent is read as unsigned."""
        name, c, u = f"df_pow_{type_name(dtype)}", c_type(dtype), c_type(unsigned)
        exponent = c_type(dtype) if dtype.is_unsigned else f"u{c}"
        text = f"""\
static inline {c} {name}({c} x, {c} y)
{{
    {u} result = 1, square = ({u})x;
    for ({exponent} n = ({exponent})y; n != 0; n = ({exponent})(n >> 1)) {{
        result = n & 1 ? result * square : result;
        square *= square;
    }}
    return ({c})result;
}}
"""
        return self.add(name, text)

    def has(self, name: str) -> bool:
        """Whether the function is written."""
        return name in self._functions

    def function(self, name: str, dtype: DType, parameters: Iterable[str], lines: CLines) -> None:
        """Add a function of parameters of ``dtype``, whose body is ``lines``."""
        c = c_type(dtype)
        head = f"static inline {c} {name}({', '.join(f'{c} {p}' for p in parameters)})"
        self._functions[name] = "\n".join([head, "{", *lines.text, "}", ""])

    def pieces(self) -> list[str]:
        """The text of each function."""
        return list(self._functions.values())
