"""One call of a device program: its steps one after another.

The host enqueues launches and copies, and goes on. It waits for the device where it needs a value: at a
host call, an assertion, the condition of a loop, and for the results. A kernel whose check fails writes the
check's number to the status word. The host reads that word when it waits anyway, and at the end; the smallest
number is that of the first check that failed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from dualflow.backends.opencl.call_buffers import CallBuffers
from dualflow.backends.opencl.device_array import DeviceArray
from dualflow.backends.opencl.devices import NO_CHECK_FAILED, OpenCLDevice
from dualflow.backends.opencl.program import DeviceProgram, Placement
from dualflow.backends.opencl.steps import (
    BufferArgument,
    CopyOnDevice,
    HostBranch,
    HostCall,
    HostLoop,
    HostOperand,
    Int64Argument,
    KernelArgument,
    Launch,
    PartialResults,
    Require,
    ScalarArgument,
    ScratchMemory,
    Step,
    Transfer,
    WriteSizes,
)
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spans import span
from dualflow.graph.effect_log import EffectLog, run_host_kernel
from dualflow.graph.ir import Node
from dualflow.graph.symbolic_evaluation import with_numbers
from dualflow.schedule.call_reports import OUT_OF_BOUNDS, check_error, check_results
from dualflow.sizes.symbolic_sizes import SizeFactor, bind_sizes

Array = np.ndarray[Any, Any]

ITERATIONS_AHEAD = 64
"""The most iterations of a loop that the host enqueues before it waits, and reads the status word.

So a failed check or a signal ends a long loop soon, and the queue stays short.
"""
SCRATCH_BYTES = 64 << 20
"""The scratch memory of a launch, unless one group needs more; work-items then take several iterations."""


class FailedCheck(Exception):
    """A check failed: its node, and a function that creates the error."""

    def __init__(self, node: Node, make: Callable[[], Exception]) -> None:
        super().__init__(node)
        self.node, self.make = node, make


class DeviceResults(NamedTuple):
    """The results of a call.

    Attributes:
        outputs: the outputs, on the host or on the device.
        updated: the new value of each updated variable, where its value was.
    """

    outputs: list[Array | DeviceArray]
    updated: list[Array | DeviceArray]


class DeviceCall:
    """The state of one call.

    Args:
        device: the device.
        program: the program.
        placement: where the inputs are, and where the results go.
        constants: the constants on the device, which all calls share.
        values: the inputs: arrays, or arrays on the device.
        sizes: the numbers of the size variables.
        effect_log: records what runs on the host.
    """

    def __init__(
        self,
        device: OpenCLDevice,
        program: DeviceProgram,
        placement: Placement,
        constants: Mapping[int, DeviceArray],
        values: Sequence[Array | DeviceArray],
        sizes: Mapping[SizeFactor, int],
        effect_log: EffectLog | None,
    ) -> None:
        self._device, self._program, self._plan = device, program, program.plan
        self._placement = placement
        self._sizes, self._effect_log = sizes, effect_log
        self._buffers = CallBuffers(device, program, constants, values, sizes)
        self._temporary: list[cl.Buffer] = []
        self._partials: dict[int, cl.Buffer] = {}
        self._iterations: dict[int, int] = {}  # the trip count of each loop that has ended
        self._status: cl.Buffer | None = None
        self._launched: list[tuple[int, Launch]] = []  # with unread checks: the number of checks before it
        self._checks = 0  # the number of unread checks

    def run(self) -> DeviceResults:
        """The results; nothing writes to the inputs.

        The host waits for the device if the call has transfers, whose arrays are alive until then, or updates
        variables, whose new values are returned only if everything has run.
        """
        program, buffers, first = self._program, self._buffers, self._plan.first_output
        try:
            for i in program.updated:
                if buffers.is_input_on_device(i):
                    buffers.copy_input(i)
            self._run(program.with_transfers(self._placement))
            self._read_status()
            on_device = self._placement.results
            if buffers.transferring or program.updated or not on_device:
                self._device.queue.finish()
            results = range(first, first + len(self._plan.outputs))
            outputs = [buffers.result(i, on_device and i not in program.host_results) for i in results]
            updated = [buffers.result(i, buffers.is_input_on_device(i)) for i in program.updated]
            return DeviceResults(outputs, updated)
        except BaseException:
            self._device.queue.finish()  # the arrays of transfers are alive until then
            raise
        finally:
            self._release()

    def _release(self) -> None:
        self._release_temporary()
        self._buffers.release()
        memory = self._device.memory
        for buffer in self._partials.values():
            memory.release(buffer)
        if self._status is not None:
            memory.release(self._status)

    def _release_temporary(self) -> None:
        """Release the scratch memory of launches: commands run in order, so later ones may use it."""
        while self._temporary:
            self._device.memory.release(self._temporary.pop())

    # Steps

    def _run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Launch():
                    self._launch(step)
                case Transfer():
                    self._buffers.transfer(step)
                case CopyOnDevice():
                    self._buffers.copy(step)
                case WriteSizes():
                    self._buffers.write_sizes(step)
                case HostCall():
                    self._host_call(step)
                case Require():
                    self._require(step)
                case HostBranch():
                    number = int(self._read(step.number).reshape(-1)[0])
                    inside = 0 <= number < len(step.branches)
                    self._run(step.branches[number if inside else -1])
                case HostLoop():
                    self._loop(step)

    # Launches

    def _launch(self, launch: Launch) -> None:
        items, group_size = self._buffers.size(launch.items), launch.group_size
        if items <= 0:
            return
        owners = 1 if launch.by_groups else group_size
        groups = -(-items // owners)
        scratch = sum(self._buffers.size(a.nbytes) for a in launch.arguments if isinstance(a, ScratchMemory))
        if scratch:
            groups = min(groups, max(SCRATCH_BYTES // (scratch * owners), 1))
        arguments: list[Any] = []
        for argument in launch.arguments:
            arguments += self._argument(argument, groups * owners, launch.node)
        arguments.append(np.int64(items))
        if launch.kernel.checks:
            arguments += [self._status_word(), np.int32(self._checks)]
            self._launched.append((self._checks, launch))
            self._checks += len(launch.kernel.checks)
        kernel = self._device.kernel(launch.kernel.text)
        self._device.enqueue(kernel, groups * group_size, group_size, arguments)
        self._release_temporary()

    def _argument(self, argument: KernelArgument, owners: int, node: Node) -> list[Any]:
        """An argument for a kernel whose scratch memory has ``owners``: work-items or groups."""
        match argument:
            case BufferArgument():
                buffer, offset = self._buffers.address(argument.buffer)
                return [buffer, np.int64(offset + self._buffers.size(argument.offset))]
            case PartialResults():
                if argument.number not in self._partials:
                    nbytes = self._buffers.size(argument.nbytes)
                    self._partials[argument.number] = self._allocate(nbytes, node)
                return [self._partials[argument.number], np.int64(0)]
            case ScratchMemory():
                self._temporary.append(self._allocate(self._buffers.size(argument.nbytes) * owners, node))
                return [self._temporary[-1]]
            case ScalarArgument():
                return [argument.value]
            case Int64Argument():
                return [np.int64(self._buffers.size(argument.value))]

    def _allocate(self, nbytes: int, node: Node) -> cl.Buffer:
        return self._device.memory.allocate(nbytes, f"scratch memory of {node.op.name}")

    # The status word

    def _status_word(self) -> cl.Buffer:
        if self._status is None:
            self._status = self._device.memory.allocate(4, "the status word")
            cl.enqueue_fill_buffer(
                self._device.queue, self._status, np.array(NO_CHECK_FAILED, np.int32), 0, 4
            )
        return self._status

    def _read_status(self) -> None:
        """Read the status word, and raise the error of the first check that failed since the last read."""
        if self._status is None or not self._launched:
            return
        status = np.empty(1, np.int32)
        cl.enqueue_copy(self._device.queue, status, self._status)
        number = int(status[0])
        if number != NO_CHECK_FAILED:
            first, launch = self._launched[bisect_right(self._launched, number - 1, key=lambda x: x[0]) - 1]
            message, node = launch.kernel.checks[number - first - 1]
            raise FailedCheck(node, partial(check_error, node, message))
        self._launched, self._checks = [], 0

    # The host

    def _read(self, operand: HostOperand) -> Array:
        """The value of an operand, as a read-only view."""
        self._read_status()
        return self._buffers.read(operand)

    def _host_call(self, call: HostCall) -> None:
        node = call.node
        inputs = [self._read(operand) for operand in call.inputs]
        self._read_status()
        with span("host", node.op.name, node.origin):
            results = run_host_kernel(with_numbers(node, self._sizes), inputs, self._effect_log, self._sizes)
        shapes = [None if None in x.shape else Shape(bind_sizes(x.shape, self._sizes)) for x in call.outputs]
        check_results(node, shapes, results)
        for operand, result in zip(call.outputs, results, strict=True):
            array = np.ascontiguousarray(result, operand.dtype.dtype).reshape(np.shape(result))
            own = array.copy() if any(np.may_share_memory(array, x) for x in inputs) else array
            self._buffers.store(operand, own)

    def _require(self, step: Require) -> None:
        if self._read(step.condition).reshape(-1)[0]:
            return
        values = [self._read(operand).copy() for operand in step.reads]
        raise FailedCheck(step.node, partial(step.node.attrs["error"], values))

    # Loops

    def _loop(self, loop: HostLoop) -> None:
        log = self._effect_log
        with nullcontext() if log is None else log.in_loop(loop.node):
            self._iterate(loop)

    def _iterate(self, loop: HostLoop) -> None:
        trip, limit = loop.statement.trip_count, self._limit(loop)
        if any(self._iterations[other] < (limit or 0) for other in loop.compared):
            raise FailedCheck(loop.node, partial(check_error, loop.node, OUT_OF_BOUNDS))
        iteration = 0
        while limit is None or iteration < limit:
            self._run(loop.test)
            if loop.condition is not None and not self._read(loop.condition).reshape(-1)[0]:
                break
            for row in loop.statement.memory.rows:
                if row.grows:
                    self._buffers.grow_stack(loop, row, iteration)
                number = (limit or 0) - 1 - iteration if loop.statement.backwards else iteration
                self._buffers.point_row(row, number)
            self._run(loop.body)
            iteration += 1
            if iteration % ITERATIONS_AHEAD == 0:
                self._buffers.finish()
                self._read_status()
        self._iterations[trip.loop] = iteration
        self._buffers.lengths.update((row.stack.buffer, iteration) for row in loop.statement.growable)

    def _limit(self, loop: HostLoop) -> int | None:
        trip = loop.statement.trip_count
        if trip.same_as is not None:
            return self._iterations[trip.same_as]
        return None if trip.limit is None else self._buffers.size(trip.limit)
