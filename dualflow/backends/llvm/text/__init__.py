"""A small LLVM IR writer: typed values with Python operators that print instructions.

The text is LLVM's own language (LLVM 22), so that a kernel can be read, diffed and hashed as it stands.
Vectors are explicit: the same element code gives ``float`` or ``<16 x float>`` instructions, whichever the
lanes of its operands say.

>>> module = LlvmModule()
>>> f = module.function("axpy", VOID, [("a", F32), ("x", PTR), ("y", PTR, "noalias"), ("n", I64)])
>>> b, (a, x, y, n) = f.builder, f.args
>>> with b.loop(0, n, 16) as loop:
...     mask = b.first_lanes(n - loop.index, 16)
...     product = a * b.load(x, loop.index, F32.vector(16), mask)
...     b.store(product + b.load(y, loop.index, F32.vector(16), mask), y, loop.index, mask)
>>> b.ret()
>>> print("".join(line for line in module.text().splitlines(True) if "fmul" in line), end="")
  %v14 = fmul <16 x float> %v13, %v11

Floating-point instructions carry no fast-math flags: a value is what IEEE 754 says, and only ``fma``
contracts. Integers wrap. Division by zero and shifts by the width or more are undefined here, as in LLVM:
the functions of `dualflow.backends.llvm.maths` define them as NumPy does.
"""

from dualflow.backends.llvm.text.builder import Block, Builder, CountedIteration, WhileLoop
from dualflow.backends.llvm.text.module import LlvmFunction, LlvmModule
from dualflow.backends.llvm.text.types import (
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    PTR,
    U8,
    U16,
    U32,
    U64,
    VOID,
    Type,
)
from dualflow.backends.llvm.text.values import EmittedValue

__all__ = [
    "BOOL",
    "F16",
    "F32",
    "F64",
    "I8",
    "I16",
    "I32",
    "I64",
    "PTR",
    "U8",
    "U16",
    "U32",
    "U64",
    "VOID",
    "Block",
    "Builder",
    "CountedIteration",
    "EmittedValue",
    "LlvmFunction",
    "LlvmModule",
    "Type",
    "WhileLoop",
]
