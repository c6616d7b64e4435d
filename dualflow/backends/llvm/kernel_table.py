"""The arguments of a kernel: a slice of the parameter table, and the code that loads it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualflow.backends.llvm.parameter_table import Parameter
from dualflow.backends.llvm.text import I64, PTR, U8, Builder, EmittedValue, Type
from dualflow.core.records import NamedTuple
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import ScratchBuffer
from dualflow.sizes.size_scalars import SizeScalar

KERNEL_ARGS = [("context", PTR), ("lo", I64), ("hi", I64), ("thread", I64)]
"""The signature of a kernel; see :mod:`dualflow.backends.llvm.lower_kernel`."""


class KernelMemory(NamedTuple):
    """A kernel's own memory in the arena: partial results of chunks, or scratch buffers of each thread.

    Attributes:
        buffer: the arena's index in the buffer table.
        starts: the byte offset of each buffer of partial results, or of each scratch buffer of thread 0.
        stride: the bytes from the scratch buffers of a thread to those of the next.
    """

    buffer: int = 0
    starts: tuple[int, ...] = ()
    stride: int = 0


def is_long(launch: KernelLaunch) -> bool:
    """Whether the kernel has many ops, so that its code is kept short.

    Its scalars are then constants of the code rather than parameters, of which each kernel text has its own,
    unless sizes determine one of them.
    """
    return launch.kernel.is_long


def code_constants(launch: KernelLaunch) -> tuple[np.generic, ...] | None:
    """The scalars of the kernel that are constants of its code; None if they are parameters."""
    return launch.constants if is_long(launch) else None


def table(launch: KernelLaunch, memory: KernelMemory, first_check: int) -> list[Parameter]:
    """The slice of the parameter table for ``launch``, in the order of :func:`load_arguments`."""
    scalars = launch.scalars if code_constants(launch) is None else ()
    return [
        *launch.parameters,
        *(x if isinstance(x, SizeScalar) else _word(x) for x in scalars),
        *(number for a in launch.buffers for number in (a.buffer, a.offset)),
        *((memory.buffer, memory.stride, *memory.starts) if memory.starts else ()),
        first_check,
    ]


def _word(number: np.generic) -> int:
    """The bits of a scalar in a word of the parameter table."""
    return int.from_bytes(number.tobytes().ljust(8, b"\0"), "little", signed=True)


class KernelArguments(NamedTuple):
    """The loaded arguments of a kernel.

    Attributes:
        parameters: the launch parameters.
        scalars: the scalar operands.
        pointers: the addresses of all buffers, the kernel's own included.
        elements: the type of the elements of each of these buffers.
        scratch: the indices of scratch buffers, which are padded for lanes that are masked off.
        status: the address of the status word.
        first_check: the number of the first check.
    """

    parameters: Sequence[EmittedValue]
    scalars: Sequence[EmittedValue]
    pointers: Sequence[EmittedValue]
    elements: Sequence[Type]
    scratch: range
    status: EmittedValue
    first_check: EmittedValue


def load_arguments(
    b: Builder, context: EmittedValue, thread: EmittedValue, launch: KernelLaunch
) -> KernelArguments:
    """Emit loads of the slice of the parameter table for ``launch``."""
    buffers, table, status = (b.load(context, i, PTR) for i in range(3))
    count = 0

    def load_next(type: Type = I64) -> EmittedValue:
        nonlocal count
        count += 1
        return b.load(table, (count - 1) * (8 // type.nbytes), type)

    kernel, scalars = launch.kernel, launch.kernel.scalars if code_constants(launch) is None else ()
    parameters = [load_next() for _ in range(kernel.parameters)]
    loaded_scalars = [load_next(Type.of_dtype(dtype.dtype)) for dtype in scalars]
    elements = [Type.of_dtype(argument.dtype.dtype) for argument in launch.buffers]
    pointers = []
    for element in elements:
        start = b.load(buffers, load_next(), PTR)
        pointers.append(b.offset(start, load_next(), element))
    scratch_dtypes = [s.dtype for s in kernel.body if isinstance(s, ScratchBuffer)]
    own = [Type.of_dtype(dtype.dtype) for dtype in scratch_dtypes or launch.partials]
    if own:
        arena, stride = b.load(buffers, load_next(), PTR), load_next()
        thread_offset = thread * stride if scratch_dtypes else None
        for _ in own:
            start = load_next()
            pointers.append(b.offset(arena, start if thread_offset is None else start + thread_offset, U8))
    scratch = range(len(elements), len(elements) + len(scratch_dtypes))
    elements += own
    return KernelArguments(parameters, loaded_scalars, pointers, elements, scratch, status, load_next())
