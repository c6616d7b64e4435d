"""Support functions of kernels: single instructions as intrinsics, and maths as source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dualflow.backends.numba.source_lines import Lines, type_name
from dualflow.core.dtypes import DType, int32, int64, uint32, uint64
from dualflow.core.records import dataclass, field

HEADER: Final = """\
import base64

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
"""The header of every file.

Indices of buffers are unsigned, ``x[u(i)]``, so that Numba checks no negative ones.
"""


def _instruction(name: str, arity: int) -> str:
    parameters = ", ".join("xyz"[:arity])
    return f'''
@intrinsic
def {name}(context, {parameters}):
    """llvm.{name}"""

    def code(context, builder, signature, args):
        type = args[0].type
        signature = ir.FunctionType(type, [type] * {arity})
        return builder.call(builder.module.declare_intrinsic("llvm.{name}", [type], signature), args)

    return x({parameters}), code
'''


def _saturated(dtype: DType) -> str:
    name, bits, sign = type_name(dtype), 8 * dtype.size, "u" if dtype.is_unsigned else "s"
    return f'''
@intrinsic
def saturated_{name}(context, x):
    """A float as {name}: the nearest end of the range outside it, 0 for nan."""

    def code(context, builder, signature, args):
        source, target = args[0].type, ir.IntType({bits})
        name = f"llvm.fpto{sign}i.sat.i{bits}.f{{x.bitwidth}}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(target, [source]), name)
        return builder.call(function, args)

    return types.{dtype.name}(x), code
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


def _reassociated(name: str, symbol: str, opcode: str) -> str:
    return f'''
@intrinsic
def {name}(context, x, y):
    """x {symbol} y, which may be reassociated, so that a loop can be vectorised"""

    def code(context, builder, signature, args):
        return builder.{opcode}(*args, flags=("reassoc",))

    return x(x, y), code
'''


def _stack_array(name: str, dtype: str, count: int) -> str:
    return f'''
@intrinsic
def {name}(context):
    """A small array on the stack of the calling function."""
    type = types.Array(types.{dtype}, 1, "C")

    def code(context, builder, signature, args):
        item = context.get_data_type(types.{dtype})
        size = ir.Constant(ir.IntType(64), context.get_abi_sizeof(item))
        count = ir.Constant(ir.IntType(64), {count})
        memory = cgutils.alloca_once(builder, ir.ArrayType(item, {count}))
        memory.align = 64
        array = context.make_array(type)(context, builder)
        data = builder.bitcast(memory, array.data.type)
        context.populate_array(array, data=data, shape=[count], strides=[size], itemsize=size, meminfo=None)
        return array._getvalue()

    return type(), code
'''


_PRIMITIVES: Final = {
    **{f"saturated_{type_name(t)}": _saturated(t) for t in (int32, int64, uint32, uint64)},
    "quotient": _division("quotient", "div"),
    "remainder": _division("remainder", "rem"),
    "select": '''
@intrinsic
def select(context, test, x, y):
    """x if test, else y, without a branch: compile time grows with branches times variables"""

    def code(context, builder, signature, args):
        return builder.select(*args)

    return x(types.boolean, x, x), code
''',
    "signalled": '''
@intrinsic
def signalled(context):
    """Whether a signal's handler has raised, so that the function must return."""

    def code(context, builder, signature, args):
        number, nothing = ir.IntType(32), ir.VoidType()

        def call(name, result, arguments):
            type = ir.FunctionType(result, [x.type for x in arguments])
            return builder.call(cgutils.get_or_insert_function(builder.module, type, name), arguments)

        state = call("PyGILState_Ensure", number, [])
        raised = call("PyErr_CheckSignals", number, [])
        call("PyGILState_Release", nothing, [state])
        return builder.icmp_signed("!=", raised, number(0))

    return types.boolean(), code
''',
    "plus": _reassociated("plus", "+", "fadd"),
    "times": _reassociated("times", "*", "fmul"),
}
"""The source of single instructions that are no LLVM intrinsics of one type."""


@dataclass(slots=True)
class Support:
    """The support functions that a file needs, each written when it is first called."""

    _functions: dict[str, tuple[str, Lines]] = field(default_factory=dict)
    _primitives: dict[str, str] = field(default_factory=dict)

    def instruction(self, name: str, arity: int) -> str:
        """The name in source of the intrinsic ``llvm.name``, which takes and returns one type."""
        self._primitives.setdefault(name, _instruction(name, arity))
        return name

    def primitive(self, name: str) -> str:
        """The name in source of another single instruction."""
        self._primitives.setdefault(name, _PRIMITIVES[name])
        return name

    def stack_array(self, dtype: DType, count: int) -> str:
        """The name in source of the function that allocates ``count`` elements on the stack."""
        name = f"stack{count}_{type_name(dtype)}"
        self._primitives.setdefault(
            name, _stack_array(name, "boolean" if dtype.is_bool else dtype.name, count)
        )
        return name

    def has(self, name: str) -> bool:
        """Whether the function is written."""
        return name in self._functions

    def function(self, name: str, parameters: Iterable[str]) -> Lines:
        """The lines of a new function."""
        lines = Lines()
        self._functions[name] = f"def {name}({', '.join(parameters)}):", lines
        return lines

    def pieces(self) -> list[str]:
        """The source of each function that is called."""
        options = (
            '@njit(error_model="numpy", forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)'
        )
        written = [("", options, head, *lines.text, "") for head, lines in self._functions.values()]
        return [*self._primitives.values(), *("\n".join(lines) for lines in written)]
