"""Fixtures for tests of emitted code: element code compiled and applied to whole arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from dualflow.backends.llvm.runtime.jit import compile_text
from dualflow.backends.llvm.text import I64, PTR, VOID, EmittedValue, LlvmModule, Type

ElementCode = Callable[[LlvmModule], Callable[..., EmittedValue]]
ArrayFunction = Callable[..., np.ndarray]


@pytest.fixture(scope="session")
def elementwise() -> Callable[..., ArrayFunction]:
    """`elementwise(code, dtypes, out, lanes)`: compiled element code, as a function of arrays."""
    return compile_elementwise


def compile_elementwise(
    code: ElementCode, dtypes: Sequence[Any], out: Any, lanes: int, bits: int = 512
) -> ArrayFunction:
    """A function of arrays (broadcast together) that applies `code(module)` to `lanes` lanes at a time."""
    module = LlvmModule(bits)
    element = code(module)
    arguments = [*[(f"x{i}", PTR) for i in range(len(dtypes))], ("out", PTR), ("n", I64)]
    function = module.function("apply", VOID, arguments)
    b, (*inputs, output, n) = function.builder, function.args
    with b.loop(0, n, lanes) as loop:
        types = [Type.of_dtype(dtype, lanes) for dtype in dtypes]
        elements = [b.load(pointer, loop.index, t) for pointer, t in zip(inputs, types, strict=True)]
        b.store(element(*elements).cast(Type.of_dtype(out, lanes)), output, loop.index)
    b.ret()
    library = compile_text(module.text(), ["apply"], {})
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(dtypes) + 1), ctypes.c_int64)
    native = prototype(library.address("apply"))

    def apply(*arrays: Any) -> np.ndarray:
        shape = np.broadcast_shapes(*[np.shape(array) for array in arrays])
        size = int(np.prod(shape))
        padded = -(-size // lanes) * lanes
        operands = [np.ones(padded, dtype) for dtype in dtypes]
        for operand, array in zip(operands, arrays, strict=True):
            operand[:size] = np.broadcast_to(array, shape).ravel()
        result = np.empty(padded, out)
        native(*[operand.ctypes.data for operand in (*operands, result)], padded)
        return result[:size].reshape(shape)

    apply.library = library  # type: ignore[attr-defined]  # keeps the code alive, and lets a test read it
    return apply
