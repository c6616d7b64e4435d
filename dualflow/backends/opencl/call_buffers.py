"""The buffers of one call of a device program: where each is, and the copies between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from dualflow.backends.opencl.device_array import DeviceArray, upload
from dualflow.backends.opencl.devices import OpenCLDevice
from dualflow.backends.opencl.program import DeviceProgram
from dualflow.backends.opencl.steps import CopyOnDevice, HostLoop, HostOperand, Transfer, WriteSizes
from dualflow.core.errors import ResourceExhaustedError
from dualflow.core.strided import strided
from dualflow.graph.control_ops import memory_message
from dualflow.graph.error_notes import call_site
from dualflow.schedule.element_ranges import range_of_layout
from dualflow.schedule.nest import Layout, contiguous_strides
from dualflow.schedule.planned import StackRow
from dualflow.schedule.program_statements import INITIAL_CAPACITY
from dualflow.sizes.symbolic_sizes import SizeFactor, bind_sizes, evaluate_size

Array = np.ndarray[Any, Any]


class CallBuffers:
    """The buffers of one call, each on the host, on the device, or a part of another one.

    A buffer is allocated when it is first needed, except for inputs and constants.

    Args:
        device: the device.
        program: the program.
        constants: the constants on the device, which all calls share.
        values: the inputs: arrays, or arrays on the device.
        sizes: the numbers of the size variables.

    Attributes:
        lengths: the number of rows of each growable stack, by its buffer.
    """

    def __init__(
        self,
        device: OpenCLDevice,
        program: DeviceProgram,
        constants: Mapping[int, DeviceArray],
        values: Sequence[Array | DeviceArray],
        sizes: Mapping[SizeFactor, int],
    ) -> None:
        self._device, self._program, self._plan = device, program, program.plan
        self._constants, self._values, self._sizes = constants, values, sizes
        self._host = {i: x for i, x in enumerate(values) if not isinstance(x, DeviceArray)}
        self._inputs = {i: x for i, x in enumerate(values) if isinstance(x, DeviceArray)}
        self._buffers: dict[int, cl.Buffer] = {}
        self._rows: dict[int, tuple[int, int]] = {}  # of a row: its stack's buffer, its first element there
        self.lengths: dict[int, int] = {}
        self._events: list[cl.Event] = []  # deleting an event would wait for its transfer

    @property
    def transferring(self) -> bool:
        """Whether arrays of the host may be read by transfers that have not ended."""
        return bool(self._events)

    def is_input_on_device(self, buffer: int) -> bool:
        """Whether a buffer is an input on the device."""
        return buffer in self._inputs

    def size(self, size: int) -> int:
        """The number that a size is in this call."""
        return size if type(size) is int else evaluate_size(size, self._sizes)

    def copy_input(self, buffer: int) -> None:
        """Copy a variable on the device to the buffer that the program updates."""
        variable = self._inputs[buffer]
        own = self._device.memory.allocate(
            variable.nbytes, f"the new value of {self._program.name_of(buffer)}"
        )
        self._buffers[buffer] = own
        if variable.nbytes:
            cl.enqueue_copy(self._device.queue, own, variable.buffer, byte_count=variable.nbytes)

    def result(self, buffer: int, on_device: bool) -> Array | DeviceArray:
        """A result: on the device, its buffer, which the call then does not release."""
        if not on_device:
            return self._host_array(buffer)
        if not self._program.has_size(buffer):
            return upload(self._host_array(buffer))
        shape, dtype = self._shape_and_dtype(buffer)
        self._on_device(buffer)
        return DeviceArray(self._device, self._buffers.pop(buffer), shape, dtype)

    def release(self) -> None:
        """Release the buffers that the call has allocated and that are no results."""
        for buffer in self._buffers.values():
            self._device.memory.release(buffer)

    def address(self, buffer: int) -> tuple[cl.Buffer, int]:
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
            allocated = self._device.memory.allocate(self.size(nbytes), what)
            self._buffers[buffer] = allocated
        return allocated

    def transfer(self, transfer: Transfer) -> None:
        """Copy a buffer between the host and the device."""
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

    def copy(self, copy: CopyOnDevice) -> None:
        """Enqueue a copy from a buffer on the device to another."""
        nbytes = self.size(copy.nbytes)
        if not nbytes:
            return
        size = copy.node.output.spec.dtype.size
        source, source_start = self.address(copy.source.buffer)
        target, target_start = self.address(copy.target.buffer)
        cl.enqueue_copy(
            self._device.queue,
            target,
            source,
            byte_count=nbytes,
            src_offset=source_start * size + self.size(copy.source.offset),
            dst_offset=target_start * size + self.size(copy.target.offset),
        )

    def write_sizes(self, step: WriteSizes) -> None:
        """Enqueue a copy of sizes to a buffer."""
        numbers = np.array([self.size(x) for x in step.values], step.dtype.dtype)
        buffer, offset = self.address(step.target.buffer)
        self._write(buffer, (offset + self.size(step.target.offset)) * step.dtype.size, numbers)

    def read(self, operand: HostOperand) -> Array:
        """The value of an operand, as a read-only view."""
        layout, shape = operand.layout, operand.shape
        if None in shape:
            return self._host_array(layout.buffer)
        bound_shape: tuple[int, ...] = bind_sizes(shape, self._sizes)
        strides, offset = bind_sizes(layout.strides, self._sizes), self.size(layout.offset)
        if operand.on_host:
            flat = self._host_array(layout.buffer).reshape(-1)
            return strided(flat[offset:], bound_shape, strides)
        flat, first = self._downloaded(operand, bound_shape, strides, offset)
        return strided(flat[offset - first :], bound_shape, strides)

    def _downloaded(
        self, operand: HostOperand, shape: Sequence[int], strides: Sequence[int], offset: int
    ) -> tuple[Array, int]:
        """The elements from the first to the last of an operand on the device, and the first's position."""
        layout, dtype = Layout(operand.layout.buffer, offset, tuple(strides)), operand.dtype
        elements = range_of_layout(layout, shape, dtype.size)
        if elements is None:
            return np.empty(0, dtype.dtype), offset
        flat = np.empty(elements.last - elements.first + 1, dtype.dtype)
        buffer, begin = self.address(layout.buffer)
        self._device.read(buffer, flat, (begin + elements.first) * dtype.size)
        return flat, elements.first

    def store(self, operand: HostOperand, value: Array) -> None:
        """Write a value where an operand is."""
        buffer = operand.layout.buffer
        if operand.whole:
            is_static = None not in operand.shape  # then a row that fills its buffer gets the shape of that
            self._host[buffer] = value.reshape(self._shape_and_dtype(buffer)[0]) if is_static else value
            return
        shape: tuple[int, ...] = bind_sizes(operand.shape, self._sizes)
        strides, offset = bind_sizes(operand.layout.strides, self._sizes), self.size(operand.layout.offset)
        if operand.on_host:
            self.finish()  # a transfer may be reading the array
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
        target, begin = self.address(buffer)
        self._write(target, (begin + first) * operand.dtype.size, flat)

    def finish(self) -> None:
        """Wait for the device; the arrays of transfers are not needed any more."""
        self._device.queue.finish()
        self._events.clear()

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
        if buffer in self.lengths:
            shape = self.lengths[buffer], *shape[1:]
        return bind_sizes(shape, self._sizes), spec.dtype.dtype

    def point_row(self, row: StackRow, number: int) -> None:
        """Point the buffer of a row at row ``number`` of its stack."""
        elements = self.size(row.nbytes) // row.dtype.size
        self._rows[row.buffer] = row.stack.buffer, self.size(row.stack.offset) + number * elements

    def grow_stack(self, loop: HostLoop, row: StackRow, iteration: int) -> None:
        """Double a stack that is full, so that it has a row for this iteration.

        A stack has at most the rows of the largest buffer that the device has memory for.
        """
        nbytes, old = max(self.size(row.nbytes), 1), self._buffers.get(row.stack.buffer)
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
