"""OpenCL C as a dialect of the C renderer: its types, and the functions that scalar ops call.

The C renderer writes C11's names. Most of what differs in OpenCL C is a name, which :data:`PREAMBLE` defines.
Three things have no definition: reading the bits of a number as another type, fused multiply-add, and buffers
of booleans, which a kernel reads as bytes.
"""

from __future__ import annotations

from typing import Final

from dualflow.backends.c.support import CSupport
from dualflow.backends.c.values import c_type, type_name
from dualflow.core.dtypes import DType, float32, float64

_INTEGERS: Final = {
    "int8_t": ("char", "CHAR"),
    "int16_t": ("short", "SHRT"),
    "int32_t": ("int", "INT"),
    "int64_t": ("long", "LONG"),
}
_NAMES: Final = """\
#define ceilf ceil
#define copysignf copysign
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
        return super().primitive(name)

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
