"""One call of a device program: its buffers, and its steps one after another.

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

from dualflow.backends.opencl.device_array import DeviceArray, upload
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
from dualflow.core.errors import ResourceExhaustedError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spans import span
from dualflow.core.strided import strided
from dualflow.graph.control_ops import memory_message
from dualflow.graph.effect_log import EffectLog, run_host_kernel
from dualflow.graph.error_notes import call_site
from dualflow.graph.ir import Node
from dualflow.graph.symbolic_evaluation import with_numbers
from dualflow.schedule.call_reports import OUT_OF_BOUNDS, check_error, check_results
from dualflow.schedule.element_ranges import range_of_layout
from dualflow.schedule.nest import Layout, contiguous_strides
from dualflow.schedule.planned import StackRow
from dualflow.schedule.program_statements import INITIAL_CAPACITY
from dualflow.sizes.symbolic_sizes import SizeFactor, bind_sizes, evaluate_size

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
        self._constants, self._values, self._sizes, self._effect_log = constants, values, sizes, effect_log
        self._host = {i: x for i, x in enumerate(values) if not isinstance(x, DeviceArray)}
        self._inputs = {i: x for i, x in enumerate(values) if isinstance(x, DeviceArray)}
        self._buffers: dict[int, cl.Buffer] = {}
        self._temporary: list[cl.Buffer] = []
        self._partials: dict[int, cl.Buffer] = {}
        self._rows: dict[int, tuple[int, int]] = {}  # of a row: its stack's buffer, its first element there
        self._iterations: dict[int, int] = {}  # the trip count of each loop that has ended
        self._lengths: dict[int, int] = {}  # the rows of each growable stack
        self._status: cl.Buffer | None = None
        self._launched: list[tuple[int, Launch]] = []  # with unread checks: the number of checks before it
        self._checks = 0  # the number of unread checks
        self._events: list[cl.Event] = []  # deleting an event would wait for its transfer

    def run(self) -> DeviceResults:
        """The results; nothing writes to the inputs.

        The host waits for the device if the call has transfers, whose arrays are alive until then, or updates
        variables, whose new values are returned only if everything has run.
        """
        program, first = self._program, self._plan.first_output
        try:
            for i in program.updated:
                if i in self._inputs:
                    self._copy_input(i)
            self._run(program.with_transfers(self._placement))
            self._read_status()
            on_device = self._placement.results
            if self._events or program.updated or not on_device:
                self._device.queue.finish()
            results = range(first, first + len(self._plan.outputs))
            outputs = [self._result(i, on_device and i not in program.host_results) for i in results]
            return DeviceResults(outputs, [self._result(i, i in self._inputs) for i in program.updated])
        except BaseException:
            self._device.queue.finish()  # the arrays of transfers are alive until then
            raise
        finally:
            self._release()

    def _copy_input(self, buffer: int) -> None:
        """Copy a variable on the device to the buffer that the program updates."""
        variable = self._inputs[buffer]
        own = self._device.memory.allocate(
            variable.nbytes, f"the new value of {self._program.name_of(buffer)}"
        )
        self._buffers[buffer] = own
        if variable.nbytes:
            cl.enqueue_copy(self._device.queue, own, variable.buffer, byte_count=variable.nbytes)

    def _result(self, buffer: int, on_device: bool) -> Array | DeviceArray:
        """A result: on the device, its buffer, which the call then does not release."""
        if not on_device:
            return self._host_array(buffer)
        if not self._program.has_size(buffer):
            return upload(self._host_array(buffer))
        shape, dtype = self._shape_and_dtype(buffer)
        self._on_device(buffer)
        return DeviceArray(self._device, self._buffers.pop(buffer), shape, dtype)

    def _release(self) -> None:
        memory = self._device.memory
        self._release_temporary()
        for buffer in (*self._buffers.values(), *self._partials.values()):
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
                    self._transfer(step)
                case CopyOnDevice():
                    self._copy(step)
                case WriteSizes():
                    self._write_sizes(step)
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

    def _size(self, size: int) -> int:
        return size if type(size) is int else evaluate_size(size, self._sizes)

    # Launches

    def _launch(self, launch: Launch) -> None:
        items, group_size = self._size(launch.items), launch.group_size
        if items <= 0:
            return
        owners = 1 if launch.by_groups else group_size
        groups = -(-items // owners)
        scratch = sum(self._size(a.nbytes) for a in launch.arguments if isinstance(a, ScratchMemory))
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
                buffer, offset = self._address(argument.buffer)
                return [buffer, np.int64(offset + self._size(argument.offset))]
            case PartialResults():
                if argument.number not in self._partials:
                    nbytes = self._size(argument.nbytes)
                    self._partials[argument.number] = self._allocate(nbytes, node)
                return [self._partials[argument.number], np.int64(0)]
            case ScratchMemory():
                self._temporary.append(self._allocate(self._size(argument.nbytes) * owners, node))
                return [self._temporary[-1]]
            case ScalarArgument():
                return [argument.value]
            case Int64Argument():
                return [np.int64(self._size(argument.value))]

    def _address(self, buffer: int) -> tuple[cl.Buffer, int]:
        """The device buffer that contains a buffer of the plan, and the element where that begins."""
        offset = 0
        while buffer in self._rows:
            buffer, begin = self._rows[buffer]
            offset += begin
        return self._on_device(buffer), offset

    def _on_device(self, buffer: int) -> cl.Buffer:
        plan = self._plan
        if plan.inputs <= buffer < plan.first_output:
            return self._constants[buffer].buffer
        allocated = self._buffers.get(buffer)
        if allocated is None and buffer in self._inputs:
            return self._inputs[buffer].buffer
        if allocated is None:
            nbytes = self._program.bounds.nbytes[buffer]
            assert nbytes is not None, "a buffer on the device has one size"
            what = f"{self._program.name_of(buffer)} of {self._program.graph_name}"
            allocated = self._device.memory.allocate(self._size(nbytes), what)
            self._buffers[buffer] = allocated
        return allocated

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

    # Copies

    def _transfer(self, transfer: Transfer) -> None:
        buffer = transfer.buffer
        if transfer.to_device:
            self._write(self._on_device(buffer), 0, self._host_array(buffer))
            return
        array = np.empty(*self._shape_and_dtype(buffer))
        if array.nbytes:  # a stack without rows has no buffer
            self._device.read(self._on_device(buffer), array)
        self._host[buffer] = array

    def _write(self, target: cl.Buffer, offset: int, array: Array) -> None:
        """Enqueue a copy of a contiguous array to a buffer, from a byte on."""
        event = self._device.write(target, array, offset)
        if event is not None:
            self._events.append(event)

    def _copy(self, copy: CopyOnDevice) -> None:
        nbytes = self._size(copy.nbytes)
        if not nbytes:
            return
        size = copy.node.output.spec.dtype.size
        source, source_start = self._address(copy.source.buffer)
        target, target_start = self._address(copy.target.buffer)
        cl.enqueue_copy(
            self._device.queue,
            target,
            source,
            byte_count=nbytes,
            src_offset=source_start * size + self._size(copy.source.offset),
            dst_offset=target_start * size + self._size(copy.target.offset),
        )

    def _write_sizes(self, step: WriteSizes) -> None:
        numbers = np.array([self._size(x) for x in step.values], step.dtype.dtype)
        buffer, offset = self._address(step.target.buffer)
        self._write(buffer, (offset + self._size(step.target.offset)) * step.dtype.size, numbers)

    # The host

    def _host_array(self, buffer: int) -> Array:
        """The array of a buffer outside the arena."""
        plan = self._plan
        if buffer not in self._host:
            if plan.inputs <= buffer < plan.first_output:
                self._host[buffer] = plan.constants[buffer - plan.inputs]
            else:
                self._host[buffer] = np.empty(*self._shape_and_dtype(buffer))
        return self._host[buffer]

    def _shape_and_dtype(self, buffer: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """The shape and dtype of an input, a result, or an array of a host call."""
        plan = self._plan
        if buffer < plan.inputs:
            return self._values[buffer].shape, self._values[buffer].dtype
        spec = (*plan.outputs, *plan.temporaries)[buffer - plan.first_output]
        shape = tuple(spec.shape)
        if buffer in self._lengths:
            shape = self._lengths[buffer], *shape[1:]
        return bind_sizes(shape, self._sizes), spec.dtype.dtype

    def _read(self, operand: HostOperand) -> Array:
        """The value of an operand, as a read-only view."""
        self._read_status()
        layout, shape = operand.layout, operand.shape
        if None in shape:
            return self._host_array(layout.buffer)
        known: tuple[int, ...] = bind_sizes(shape, self._sizes)
        strides, offset = bind_sizes(layout.strides, self._sizes), self._size(layout.offset)
        if operand.on_host:
            flat = self._host_array(layout.buffer).reshape(-1)
            return strided(flat[offset:], known, strides)
        flat, first = self._downloaded(operand, known, strides, offset)
        return strided(flat[offset - first :], known, strides)

    def _downloaded(
        self, operand: HostOperand, shape: Sequence[int], strides: Sequence[int], offset: int
    ) -> tuple[Array, int]:
        """The elements from the first to the last of an operand on the device, and the first's position."""
        layout, dtype = Layout(operand.layout.buffer, offset, tuple(strides)), operand.dtype
        elements = range_of_layout(layout, shape, dtype.size)
        if elements is None:
            return np.empty(0, dtype.dtype), offset
        flat = np.empty(elements.last - elements.first + 1, dtype.dtype)
        buffer, begin = self._address(layout.buffer)
        self._device.read(buffer, flat, (begin + elements.first) * dtype.size)
        return flat, elements.first

    def _store(self, operand: HostOperand, value: Array) -> None:
        """Write a value where an operand is."""
        buffer = operand.layout.buffer
        if operand.whole:
            is_static = None not in operand.shape  # then a row that fills its buffer gets the shape of that
            self._host[buffer] = value.reshape(self._shape_and_dtype(buffer)[0]) if is_static else value
            return
        shape: tuple[int, ...] = bind_sizes(operand.shape, self._sizes)
        strides, offset = bind_sizes(operand.layout.strides, self._sizes), self._size(operand.layout.offset)
        if operand.on_host:
            self._finish()  # a transfer may be reading the array
            array = self._host_array(buffer)
            if buffer < self._plan.inputs and array is self._values[buffer]:
                array = self._host[buffer] = array.copy()  # a variable is assigned at the end
            strided(array.reshape(-1)[offset:], shape, strides, writeable=True)[...] = value
            return
        if tuple(strides) == contiguous_strides(shape):
            flat, first = np.ascontiguousarray(value).reshape(-1), offset
        else:
            flat, first = self._downloaded(operand, shape, strides, offset)
            strided(flat[offset - first :], shape, strides, writeable=True)[...] = value
        target, begin = self._address(buffer)
        self._write(target, (begin + first) * operand.dtype.size, flat)

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
            self._store(operand, own)

    def _finish(self) -> None:
        """Wait for the device; the arrays of transfers are not needed any more."""
        self._device.queue.finish()
        self._events.clear()

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
                    self._grow(loop, row, iteration)
                number = (limit or 0) - 1 - iteration if loop.statement.backwards else iteration
                self._point(row, number)
            self._run(loop.body)
            iteration += 1
            if iteration % ITERATIONS_AHEAD == 0:
                self._finish()
                self._read_status()
        self._iterations[trip.loop] = iteration
        self._lengths.update((row.stack.buffer, iteration) for row in loop.statement.growable)

    def _limit(self, loop: HostLoop) -> int | None:
        trip = loop.statement.trip_count
        if trip.same_as is not None:
            return self._iterations[trip.same_as]
        return None if trip.limit is None else self._size(trip.limit)

    def _point(self, row: StackRow, number: int) -> None:
        """Point the buffer of a row at row ``number`` of its stack."""
        elements = self._size(row.nbytes) // row.dtype.size
        self._rows[row.buffer] = row.stack.buffer, self._size(row.stack.offset) + number * elements

    def _grow(self, loop: HostLoop, row: StackRow, iteration: int) -> None:
        """Double a stack that is full, so that it has a row for this iteration.

        A stack has at most the rows of the largest buffer that the device has memory for.
        """
        nbytes, old = max(self._size(row.nbytes), 1), self._buffers.get(row.stack.buffer)
        if old is not None and (iteration + 1) * nbytes <= old.size:
            return
        memory = self._device.memory
        capacity = min(max(INITIAL_CAPACITY, 2 * iteration), memory.available // nbytes)
        rows = max(capacity, iteration + 1)
        try:
            stack = memory.allocate(rows * nbytes, self._program.stack_name(loop, row))
        except ResourceExhaustedError as error:
            error.add_note(f"{memory_message(nbytes)}\n{call_site(loop.node)}")
            raise
        self._buffers[row.stack.buffer] = stack
        if old is not None:
            cl.enqueue_copy(self._device.queue, stack, old, byte_count=iteration * nbytes)
            memory.release(old)
