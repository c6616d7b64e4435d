"""A writer of LLVM IR text: typed values with Python operators that append instructions.

The text is LLVM assembly (LLVM 22), so a kernel can be read, diffed and hashed. Vectors are explicit: the
same element code emits ``float`` or ``<16 x float>`` instructions, by the lanes of its operands.

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

Floating-point instructions have no fast-math flags: results follow IEEE 754, and only ``fma`` contracts.
Integers wrap. Division by zero and shifts by the width or more are undefined here, as in LLVM: the functions
of ``dualflow.backends.llvm.maths`` define them as NumPy does.
"""

from dualflow.backends.llvm.text.builder import Block, Builder, CountedIteration, WhileLoop
from dualflow.backends.llvm.text.emitted_values import EmittedValue
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
