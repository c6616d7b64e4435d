"""OpenCL C as a dialect of the C renderer: its types, and the functions that scalar ops call.

The C renderer writes C11's names. Most of what differs in OpenCL C is a name, which :data:`PREAMBLE` defines.
These have no definition: reading the bits of a number as another type, fused multiply-add, and buffers of
booleans, which a kernel reads as bytes. Complex numbers are pairs, vectors of two elements. A float16 is its
bits, as kernels only move it and cast it: by arithmetic of integers, for which a device needs no extension.
"""

from __future__ import annotations

from typing import Final

from dualflow.backends.c.source_lines import c_type, type_name
from dualflow.backends.c.support import CSupport
from dualflow.core.dtypes import DType, complex64, complex128, float32, float64

LARGEST_GROUP: Final = 256
"""The most work-items of a group; a device must have as many. OpenCL requires 32 KB of local memory of it."""
_INTEGERS: Final = {
    "int8_t": ("char", "CHAR"),
    "int16_t": ("short", "SHRT"),
    "int32_t": ("int", "INT"),
    "int64_t": ("long", "LONG"),
}
_NAMES: Final = """\
#define ceilf ceil
#define copysignf copysign
#define cimag(z) ((z).y)
#define cimagf(z) ((z).y)
#define creal(z) ((z).x)
#define crealf(z) ((z).x)
#define cosf cos
#define fabsf fabs
#define floorf floor
#define fmaf fma
#define fmodf fmod
#define rintf rint
#define sinf sin
#define sqrtf sqrt
#define tanf tan
#define truncf trunc
"""
"""C's functions of floats. Those of OpenCL are overloaded, so that none has a suffix."""


_FROM_FLOAT16: Final = """\
static inline float df_from_f16(ushort bits)
{
    const uint exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const uint special = exponent == 31 ? 0x7f800000 : exponent + 112 << 23;
    const float normal = as_float(special | mantissa << 13);
    const float magnitude = exponent == 0 ? (float)mantissa * 5.9604644775390625e-08f : normal;
    return bits & 0x8000 ? -magnitude : magnitude;
}
"""


def _preamble() -> str:
    lines = [
        "#ifdef cl_khr_fp64",
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
        "#endif",
        "#pragma OPENCL FP_CONTRACT OFF",
        "#define DF_INDEPENDENT",
    ]
    for name, (own, limit) in _INTEGERS.items():
        bits = name.removeprefix("int").removesuffix("_t")
        lines.append(f"typedef {own} {name};")
        lines.append(f"typedef u{own} u{name};")
        lines.append(f"#define INT{bits}_MAX {limit}_MAX")
        lines.append(f"#define INT{bits}_MIN {limit}_MIN")
        lines.append(f"#define UINT{bits}_MAX U{limit}_MAX")
    lines.append("#define INT64_C(x) x##L")
    lines.append("#define UINT64_C(x) x##UL")
    return "\n".join([*lines, _NAMES])


PREAMBLE: Final = _preamble()
"""The first lines of each program."""


def program(*pieces: str) -> str:
    """The text of a program: the preamble and ``pieces``, with OpenCL's types of pairs."""
    text = "\n".join([PREAMBLE, *pieces])
    return text.replace("float _Complex", "float2").replace("double _Complex", "double2")


def buffer_type(dtype: DType) -> str:
    """The type of an element in memory: a boolean is a byte, since devices choose the size of ``bool``.

    >>> from dualflow.core.dtypes import bool_, float32
    >>> buffer_type(bool_), buffer_type(float32)
    ('uint8_t', 'float')
    """
    return "uint8_t" if dtype.is_bool else c_type(dtype)


class OpenCLSupport(CSupport):
    """The support functions that a kernel calls, in OpenCL C."""

    def primitive(self, name: str) -> str:
        for dtype in (float32, float64):
            if name == f"multiply_add_{type_name(dtype)}":
                return self._multiply_add(name, dtype)
        for dtype in (complex64, complex128):
            if name == f"complex_{type_name(dtype)}":
                return self._complex(name, dtype)
        return super().primitive(name)

    def _complex(self, name: str, dtype: DType) -> str:
        """The pair of two parts."""
        c, part = c_type(dtype), c_type(dtype.real)
        text = f"static inline {c} df_{name}({part} re, {part} im)\n{{\n    return ({c})(re, im);\n}}\n"
        return self.add(f"df_{name}", text)

    def from_float16(self) -> str:
        """The name of the function that casts the bits of a float16 to float32."""
        return self.add("df_from_f16", _FROM_FLOAT16)

    def to_float16(self, dtype: DType) -> str:
        """The name of the function that rounds a float to the bits of a float16, ties to even."""
        name = f"df_{type_name(dtype)}_to_f16"
        bits, mantissa = ("uint", 23) if dtype.size == 4 else ("ulong", 52)
        bias, dropped = (1 << 8 * dtype.size - mantissa - 2) - 1, mantissa - 10
        c, suffix = c_type(dtype), "f" if dtype.size == 4 else ""
        text = f"""\
static inline ushort {name}({c} x)
{{
    const {c} magnitude = fabs(x);
    const ushort sign = signbit(x) ? 0x8000 : 0;
    if (!(magnitude < 65520{".0" + suffix})) return sign | (magnitude == magnitude ? 0x7c00 : 0x7e00);
    if (magnitude < 6.103515625e-05{suffix}) return sign | (ushort)rint(magnitude * 16777216.0{suffix});
    {bits} rounded = as_{bits}(magnitude) - (({bits}){bias - 15} << {mantissa});
    rounded += ((({bits})1 << {dropped - 1}) - 1) + (rounded >> {dropped} & 1);
    return sign | (ushort)(rounded >> {dropped});
}}
"""
        return self.add(name, text)

    def _multiply_add(self, name: str, dtype: DType) -> str:
        """``x * y + z``, rounded once: devices have an instruction for it, and so has the default backend."""
        c = c_type(dtype)
        text = f"static inline {c} df_{name}({c} x, {c} y, {c} z)\n{{\n    return fma(x, y, z);\n}}\n"
        return self.add(f"df_{name}", text)

    def bits(self, source: DType, target: DType) -> str:
        own = {
            f"{prefix}{name}": f"{prefix}{kind}"
            for name, (kind, _) in _INTEGERS.items()
            for prefix in ("", "u")
        }
        c, result = c_type(source), c_type(target)
        name = f"df_{type_name(source)}_as_{type_name(target)}"
        text = f"static inline {result} {name}({c} x)\n{{\n    return as_{own.get(result, result)}(x);\n}}\n"
        return self.add(name, text)
