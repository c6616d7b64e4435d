"""Functions that kernels call: single instructions as intrinsics, and maths as source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dualflow.backends.numba.values import Lines, SourceBuilder, SourceValue, type_name
from dualflow.native.llvm import Type

HEADER: Final = """\
import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic

u = np.uintp
b1, inf, nan = np.bool_, np.inf, np.nan
i8, i16, i32, i64 = np.int8, np.int16, np.int32, np.int64
u8, u16, u32, u64 = np.uint8, np.uint16, np.uint32, np.uint64
f32, f64 = np.float32, np.float64
"""
"""What every file begins with.

A place in a buffer is unsigned, ``x[u(i)]``: Numba then need not look below 0.
"""


ROUTINES: Final = '''
def array(flat, offset, shape, strides):
    """The elements of a flat array that lie at these distances, as an array of this shape."""
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, [s * flat.itemsize for s in strides])


def row(stack, start, count, itemsize):
    """A stretch of a stack, as bytes."""
    return stack.view(u8)[start * itemsize : (start + count) * itemsize]


@njit(error_model="numpy", cache=True)
def scatter_inside(indices, sizes):
    """Whether each row of indices names a place of an array of these sizes."""
    for i in range(indices.shape[0]):
        for d in range(indices.shape[1]):
            if not 0 <= i64(indices[i, d]) < sizes[d]:
                return False
    return True


@njit(error_model="numpy", cache=True)
def scatter_put(out, indices, rows, sizes):
    """Put rows where the rows of indices say, in order."""
    for turn in range(rows.shape[0]):
        for i in range(indices.shape[0]):
            place = i64(0)
            for d in range(indices.shape[1]):
                place = place * sizes[d] + i64(indices[i, d])
            for j in range(rows.shape[2]):
                out[turn, place, j] = rows[turn, i, j]


@njit(error_model="numpy", cache=True)
def scatter_add(out, indices, rows, sizes):
    """Add rows to those that the rows of indices say, in order."""
    for turn in range(rows.shape[0]):
        for i in range(indices.shape[0]):
            place = i64(0)
            for d in range(indices.shape[1]):
                place = place * sizes[d] + i64(indices[i, d])
            for j in range(rows.shape[2]):
                out[turn, place, j] += rows[turn, i, j]
'''
"""What programs call beside their kernels."""


def _instruction(name: str) -> str:
    return f'''
@intrinsic
def {name}(context, x):
    """llvm.{name}"""

    def code(context, builder, signature, args):
        return builder.call(builder.module.declare_intrinsic("llvm.{name}", [args[0].type]), args)

    return x(x), code
'''


def _saturated(type: Type) -> str:
    name, sign = type_name(type), "s" if type.kind == "i" else "u"
    return f'''
@intrinsic
def saturated_{name}(context, x):
    """A float as {name}: the nearest end of the range outside it, 0 for nan."""

    def code(context, builder, signature, args):
        source, target = args[0].type, ir.IntType({type.bits})
        name = f"llvm.fpto{sign}i.sat.i{type.bits}.f{{x.bitwidth}}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(target, [source]), name)
        return builder.call(function, args)

    return types.{type.dtype.name}(x), code
'''


def _division(name: str, stem: str) -> str:
    return f'''
@intrinsic
def {name}(context, x, y):
    """Integer division towards zero, one instruction."""

    def code(context, builder, signature, args):
        return (builder.s{stem} if x.signed else builder.u{stem})(*args)

    return x(x, y), code
'''


PRIMITIVES: Final = {
    **{name: _instruction(name) for name in ("sqrt", "floor", "ceil", "trunc", "roundeven")},
    **{f"saturated_{k}{b}": _saturated(Type(k, b)) for k in "iu" for b in (32, 64)},
    "quotient": _division("quotient", "div"),
    "remainder": _division("remainder", "rem"),
    "copysign": '''
@intrinsic
def copysign(context, x, y):
    """The magnitude of x with the sign of y."""

    def code(context, builder, signature, args):
        type = args[0].type
        signature = ir.FunctionType(type, [type, type])
        return builder.call(builder.module.declare_intrinsic("llvm.copysign", [type], signature), args)

    return x(x, y), code
''',
    "fma": '''
@intrinsic
def fma(context, x, y, z):
    """x * y + z, rounded once"""

    def code(context, builder, signature, args):
        return builder.fma(*args)

    return x(x, y, z), code
''',
    "plus": '''
@intrinsic
def plus(context, x, y):
    """x + y, which may be summed in another order, so that a loop can use lanes"""

    def code(context, builder, signature, args):
        return builder.fadd(*args, flags=("reassoc",))

    return x(x, y), code
''',
}
"""The source of each single instruction, by name."""

_LIBM: Final = {"sin", "cos", "tan", "fmod"}


@dataclass(slots=True)
class _Function:
    """A function of maths while it is written."""

    builder: SourceBuilder
    args: tuple[SourceValue, ...]


@dataclass(slots=True)
class Support:
    """The support functions that a file needs, each written when it is first called.

    It stands where native code has its module.
    """

    _functions: dict[str, Lines] = field(default_factory=dict)
    _heads: dict[str, str] = field(default_factory=dict)
    _used: dict[str, None] = field(default_factory=dict)

    def use(self, name: str) -> str:
        """Note that ``name`` is called; returns how the source spells it."""
        spelled = _spelled(name)
        if spelled in PRIMITIVES:
            self._used.setdefault(spelled)
        return spelled

    def has(self, name: str) -> bool:
        """Whether the function is written."""
        return _spelled(name) in self._functions

    def declare(self, name: str, ret: Type, args: Sequence[Type], attributes: str = "") -> str:
        """Name a function of C's library, which Numba knows by NumPy's name."""
        return name

    def function(
        self,
        name: str,
        ret: Type,
        args: Sequence[tuple[str, Type]],
        attributes: str = "",
        internal: bool = True,
    ) -> _Function:
        """A new function, to be filled through its builder."""
        spelled, lines = _spelled(name), Lines()
        self._functions[spelled] = lines
        self._heads[spelled] = f"def {spelled}({', '.join(n for n, _ in args)}):"
        builder = SourceBuilder(lines, self.use)
        return _Function(builder, tuple([builder.named(t, n) for n, t in args]))

    def text(self) -> str:
        """The source of all that was used, what is called before its callers."""
        parts = [PRIMITIVES[name] for name in self._used]
        parts += map(self._text_of, sorted(self._functions, key=self._rank))
        return "\n".join(parts)

    def _text_of(self, name: str) -> str:
        head = '@njit(error_model="numpy", forceinline=True, no_cpython_wrapper=True)'
        return "\n".join(["", head, self._heads[name], *self._functions[name].text, ""])

    def _rank(self, name: str) -> int:
        """Functions are noted when they are begun, so that a callee comes after its caller."""
        return -list(self._functions).index(name)


def _spelled(name: str) -> str:
    """``exp_f32`` for ``df.exp.f32``, ``np.sin`` for C's sinf."""
    if name.startswith("df."):
        return name.removeprefix("df.").replace(".", "_")
    bare = name.removesuffix("f") if name.removesuffix("f") in _LIBM else name
    return f"np.{bare}" if bare in _LIBM else name
