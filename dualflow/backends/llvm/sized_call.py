"""One call of a program with dynamic sizes: its parameters, its memory, and its host calls."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.program_image import ProgramImage
from dualflow.backends.llvm.runtime import jit
from dualflow.core.array_address import address_of
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.strided import strided
from dualflow.graph.effect_log import EffectLog, run_host_kernel
from dualflow.graph.ir import Node
from dualflow.graph.symbolic_evaluation import with_numbers
from dualflow.schedule.call_reports import check_results
from dualflow.schedule.nest import Layout
from dualflow.schedule.program_statements import CallRoutine
from dualflow.sizes.symbolic_sizes import (
    SizeVariable,
    bind_sizes,
    evaluate_size,
    is_static,
)

Array = np.ndarray[Any, Any]
_free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(jit.process_symbol("free"))


class SizedCall:
    """The state of one call of a program with dynamic sizes.

    Attributes:
        table: the addresses of the buffers; the program allocates those of dynamic size.
        params: the parameter table; the program writes parameters that depend on dynamic sizes.
        arena: the memory of intermediates of static size.
    """

    __slots__ = ("_arrays", "_image", "arena", "params", "table")

    def __init__(self, image: ProgramImage, params: Array, arrays: Sequence[Array], arena: Array) -> None:
        self._image = image
        self.params, self.arena = params, arena
        self.table = np.zeros(image.table_size, np.uintp)
        self._arrays: dict[int, Array] = dict(enumerate([*arrays, *image.constants]))
        for i, spec in enumerate((*image.outputs, *image.temporaries), start=image.first_output):
            if is_static(spec.shape):
                self._arrays[i] = self.empty(tuple(spec.shape), spec.dtype.dtype)  # type: ignore[arg-type]  # fixed
        self._arrays[image.arena] = arena
        for (number, axis), index in image.input_sizes.items():
            params[index] = arrays[number].shape[axis]
        for i, array in self._arrays.items():
            self.table[i] = address_of(array)

    def output(self, number: int) -> Array:
        """An output; one of dynamic size is copied from the program's memory.

        Raises:
            MemoryError, ValueError: NumPy can't allocate an array of its size.
        """
        buffer = self._image.first_output + number
        array = self._arrays.get(buffer)
        if array is not None:
            return array
        shape = [int(self.params[index]) for index in self._image.output_shapes[number]]
        return self._copied(buffer, self._image.outputs[number], shape)

    def _copied(self, buffer: int, spec: TensorSpec, shape: Sequence[int]) -> Array:
        array = np.empty(shape, spec.dtype.dtype)
        if array.nbytes:
            ctypes.memmove(address_of(array), int(self.table[buffer]), array.nbytes)
        return array

    def release(self) -> None:
        """Free the memory that the program has allocated."""
        for buffer in self._image.block_sizes:
            if buffer not in self._arrays:
                self.free(int(self.table[buffer]))

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Memory for an output or an intermediate of static size.

        This and the three following methods are hooks: the checked mode overrides them, so that each array
        is between protected pages.
        """
        return np.empty(shape, dtype)

    def input_of_host(self, array: Array) -> Array:
        """The input of a host kernel, for a view of a buffer: the view; in the checked mode, a copy."""
        return array

    def result_of_host(self, node: Node, array: Array) -> Array:
        """The buffer for a result of a host kernel: the result; in the checked mode, a copy."""
        return array

    def free(self, address: int) -> None:
        """Free memory that the program has allocated."""
        _free(address)

    def host(self, call: CallRoutine, effect_log: EffectLog | None) -> None:
        """Run a host kernel, and store its results in the buffer table."""
        bound_sizes = {
            variable: int(self.params[index]) for variable, index in self._image.size_params.items()
        }
        node = call.node
        inputs = [
            self.input_of_host(self._view(layout, v.spec, bound_sizes))
            for layout, v in zip(call.inputs, node.inputs, strict=True)
        ]
        results = run_host_kernel(with_numbers(node, bound_sizes), inputs, effect_log, bound_sizes)
        check_results(
            node, [Shape(bind_sizes(tuple(v.spec.shape), bound_sizes)) for v in node.outputs], results
        )
        for layout, value, result in zip(call.outputs, node.outputs, results, strict=True):
            array = np.ascontiguousarray(result, value.spec.dtype.dtype).reshape(np.shape(result))
            if any(np.may_share_memory(array, x) for x in inputs):  # a kernel may return an input
                array = array.copy()
            self._arrays[layout.buffer] = array = self.result_of_host(node, array)
            self.table[layout.buffer] = address_of(array)
            if layout.buffer in self._image.block_sizes:
                self.params[self._image.block_sizes[layout.buffer]] = array.nbytes

    def _view(self, layout: Layout, spec: TensorSpec, bound_sizes: dict[SizeVariable, int]) -> Array:
        """The array at ``layout``: if a size is unknown, the result of an earlier host call."""
        if None in spec.shape:
            return self._arrays[layout.buffer]
        dtype = spec.dtype.dtype
        shape = [evaluate_size(d, bound_sizes) for d in spec.shape]  # type: ignore[arg-type]  # no size is unknown
        strides = [evaluate_size(s, bound_sizes) * dtype.itemsize for s in layout.strides]
        start = int(self.table[layout.buffer]) + evaluate_size(layout.offset, bound_sizes) * dtype.itemsize
        if 0 in shape:
            return np.empty(shape, dtype)
        before = sum((d - 1) * s for d, s in zip(shape, strides, strict=True) if s < 0)
        extent = sum((d - 1) * abs(s) for d, s in zip(shape, strides, strict=True)) + dtype.itemsize
        memory: Any = (ctypes.c_char * extent).from_address(start + before)
        flat = np.ndarray((1,), dtype, memory, -before)
        return strided(flat, shape, [s // dtype.itemsize for s in strides])
