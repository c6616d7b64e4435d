"""What a kernel is given at run time: a stretch of the table of integers, and how its code reads that."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.llvm.text import I64, PTR, U8, Builder, EmittedValue, Type
from dualflow.core.records import NamedTuple
from dualflow.schedule.loop_program import Run, ScratchBuffer

KERNEL_ARGS = [("context", PTR), ("lo", I64), ("hi", I64), ("slot", I64)]
"""What a kernel is called with; see :mod:`dualflow.backends.llvm.emit`."""


class KernelMemory(NamedTuple):
    """A kernel's own memory in the arena: partial results of its stretches, or rows, which each slot has.

    Attributes:
        buffer: the arena's place in the buffer table.
        starts: the first byte of each partial result, or of each row of the first slot.
        stride: bytes from the rows of a slot to those of the next.
    """

    buffer: int = 0
    starts: tuple[int, ...] = ()
    stride: int = 0


def is_large(run: Run) -> bool:
    """Whether the code of the kernel is kept short; numbers of its element code are part of it then."""
    return run.kernel.is_long


def table(run: Run, memory: KernelMemory, first_check: int) -> list[int]:
    """The integers that the kernel of ``run`` reads, in the order in which :func:`read` expects them."""
    scalars = () if is_large(run) else run.scalars
    return [
        *run.parameters,
        *(int.from_bytes(x.tobytes().ljust(8, b"\0"), "little", signed=True) for x in scalars),
        *(number for a in run.buffers for number in (a.buffer, a.offset)),
        *((memory.buffer, memory.stride, *memory.starts) if memory.starts else ()),
        first_check,
    ]


class Given(NamedTuple):
    """The values that a kernel begins with.

    Attributes:
        numbers: by place, as ``scalars`` and ``pointers`` are.
        pointers: where each buffer begins, those of the kernel's own memory included.
        own: the places of the kernel's rows, which have room behind their ends for the lanes that are off.
        status: where a check that fails is noted.
        first_check: what the status then is for the first check.
    """

    numbers: Sequence[EmittedValue]
    scalars: Sequence[EmittedValue]
    pointers: Sequence[EmittedValue]
    own: range
    status: EmittedValue
    first_check: EmittedValue


def read(b: Builder, context: EmittedValue, slot: EmittedValue, run: Run) -> Given:
    """Load all that is in the table of ``run``."""
    buffers, integers, status = (b.load(context, i, PTR) for i in range(3))
    count = 0

    def following(type: Type = I64) -> EmittedValue:
        nonlocal count
        count += 1
        return b.load(integers, (count - 1) * (8 // type.nbytes), type)

    kernel, scalars = run.kernel, () if is_large(run) else run.kernel.scalars
    given_numbers = [following() for _ in range(kernel.parameters)]
    given_scalars = [following(Type.of_dtype(dtype.dtype)) for dtype in scalars]
    pointers = []
    for argument in run.buffers:
        start = b.load(buffers, following(), PTR)
        pointers.append(b.offset(start, following(), Type.of_dtype(argument.dtype.dtype)))
    rows = sum(isinstance(s, ScratchBuffer) for s in kernel.body)
    if rows or run.partials:
        arena, stride = b.load(buffers, following(), PTR), following()
        place = slot * stride if rows else None
        for _ in range(rows or len(run.partials)):
            start = following()
            pointers.append(b.offset(arena, start if place is None else start + place, U8))
    own = range(len(run.buffers), len(run.buffers) + rows)
    return Given(given_numbers, given_scalars, pointers, own, status, following())
