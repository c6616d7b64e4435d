"""The steps of a device program: launches and copies on the device, transfers, and what the host does.

    Launch: a kernel                          Transfer: a whole buffer, to the device or to the host
    CopyOnDevice: bytes of a buffer           HostCall: an op's NumPy kernel
    WriteSizes: sizes, as a tensor            Require: an assertion, whose values the host reads
    HostBranch, HostLoop: conditionals and loops, driven by the host

Buffers have the numbers of the plan. Sizes and offsets are numbers, or expressions over the sizes of
arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.nest import Layout
from dualflow.schedule.program_statements import RunLoop

LOCAL_SIZE = 64
"""The work-items of a group, except in kernels that share local memory."""


class BufferArgument(NamedTuple):
    """A buffer of the plan from an element on; ``offset`` is in elements."""

    buffer: int
    offset: int


class ByteAddress(NamedTuple):
    """A byte of a buffer of the plan; ``offset`` is in bytes."""

    buffer: int
    offset: int


class PartialResults(NamedTuple):
    """Memory for the partial results of one launch, which the next one combines."""

    number: int
    nbytes: int


class ScratchMemory(NamedTuple):
    """Scratch memory of ``nbytes`` for each work-item, or for each group that computes an iteration."""

    nbytes: int


class Int64Argument(NamedTuple):
    """An integer argument of 64 bits."""

    value: int


class ScalarArgument(NamedTuple):
    """A number of the dtype that the kernel computes with."""

    value: np.generic


KernelArgument = BufferArgument | PartialResults | ScratchMemory | Int64Argument | ScalarArgument


def kernel_arguments(
    launch: KernelLaunch, memory: Iterable[PartialResults | ScratchMemory] = ()
) -> tuple[KernelArgument, ...]:
    """The arguments of the kernel of a loop nest; ``memory`` is what it needs besides its buffers."""
    assert launch.constants is not None, "this backend has no scalars of sizes"
    return (
        *(BufferArgument(a.buffer, a.offset) for a in launch.buffers),
        *memory,
        *map(ScalarArgument, launch.constants),
        *map(Int64Argument, launch.parameters),
    )


class KernelProgram(NamedTuple):
    """The text of a program with one kernel, and its checks: the message and node of each, by number from 1.

    A kernel with checks has two more parameters: the status word, and the number before its first check.
    """

    text: str
    checks: tuple[tuple[str, Node], ...] = ()


class Launch(NamedTuple):
    """A launch of a kernel.

    Attributes:
        node: the node that it computes, which errors name.
        nodes: all nodes that it computes, for reports; empty for the second kernel of a reduction.
        kernel: the kernel.
        arguments: its arguments in order, except those of checks.
        items: the number of iterations of the grid.
        group_size: the work-items of a group.
        reads, writes: the buffers that it accesses.
        by_groups: whether a group computes each iteration; otherwise a work-item does.
        is_product: whether it is a matrix product.
    """

    node: Node
    nodes: tuple[Node, ...]
    kernel: KernelProgram
    arguments: tuple[KernelArgument, ...]
    items: int
    group_size: int
    reads: frozenset[int]
    writes: frozenset[int]
    by_groups: bool = False
    is_product: bool = False


class Transfer(NamedTuple):
    """A copy of a whole buffer from the host to the device, or back."""

    buffer: int
    nbytes: int
    to_device: bool


class CopyOnDevice(NamedTuple):
    """A copy of ``nbytes`` contiguous bytes between buffers."""

    node: Node
    source: ByteAddress
    target: ByteAddress
    nbytes: int


class WriteSizes(NamedTuple):
    """Writes integers to a buffer on the device, from an element on."""

    node: Node
    target: Layout
    values: tuple[int, ...]
    dtype: DType


class HostOperand(NamedTuple):
    """A tensor that the host reads or writes.

    Attributes:
        layout, shape, dtype: of the tensor; a size is None if a host call computes it.
        on_host: whether its buffer is on the host, where a transfer has brought it. Otherwise its bytes alone
            are copied from and to the device.
        whole: whether the tensor fills its buffer.
    """

    layout: Layout
    shape: tuple[int | None, ...]
    dtype: DType
    on_host: bool
    whole: bool


class HostCall(NamedTuple):
    """A node that runs as its op's NumPy kernel, and the reason."""

    node: Node
    reason: str
    inputs: tuple[HostOperand, ...]
    outputs: tuple[HostOperand, ...]


class Require(NamedTuple):
    """Ends the call unless the condition holds; ``reads`` are the values that its error shows."""

    node: Node
    condition: HostOperand
    reads: tuple[HostOperand, ...]


class HostBranch(NamedTuple):
    """Runs branch ``number``, or the last one if it is out of range."""

    node: Node
    number: HostOperand
    branches: tuple[tuple[Step, ...], ...]


class HostLoop(NamedTuple):
    """A loop: iterations of ``test`` and ``body`` while ``condition`` holds, after the steps of its start.

    ``compared`` are the loops that wrote stacks which this loop reads; a call checks that each has run at
    least as many iterations as this one's limit.
    """

    node: Node
    statement: RunLoop
    compared: tuple[int, ...]
    test: tuple[Step, ...]
    body: tuple[Step, ...]
    condition: HostOperand | None


Step = Launch | Transfer | CopyOnDevice | WriteSizes | HostCall | Require | HostBranch | HostLoop


def walk_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """All steps in program order, including those inside conditionals and loops."""
    for step in steps:
        yield step
        for inner in bodies_of(step):
            yield from walk_steps(inner)


def device_reads(steps: Iterable[Step]) -> set[int]:
    """The buffers that steps on the device read."""
    read: set[int] = set()
    for step in walk_steps(steps):
        if isinstance(step, Launch):
            read |= step.reads
        elif isinstance(step, CopyOnDevice):
            read.add(step.source.buffer)
        elif isinstance(step, HostLoop):
            read.update(row.stack.buffer for row in step.statement.memory.rows)
    return read


def bodies_of(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The branches of a conditional, or the test and body of a loop; empty for other steps."""
    if isinstance(step, HostBranch):
        return step.branches
    return (step.test, step.body) if isinstance(step, HostLoop) else ()
