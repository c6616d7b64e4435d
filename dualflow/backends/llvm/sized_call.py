"""One call of a program that learns sizes: its numbers, its memory, and what runs between native parts."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.program import Program
from dualflow.backends.llvm.runtime import jit
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.strided import strided
from dualflow.core.symbolic_sizes import SizeVariable, bind_sizes, evaluate_size, is_static
from dualflow.graph.effect_log import EffectLog
from dualflow.graph.interpret import observed, run_node
from dualflow.graph.ir import Node
from dualflow.schedule.call_reports import check_results
from dualflow.schedule.nest import Layout
from dualflow.schedule.planned import Plan
from dualflow.schedule.statements import CallRoutine

Array = np.ndarray[Any, Any]
_free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(jit.process_symbol("free"))


class SizedCall:
    """What one call works with.

    Attributes:
        table: the addresses of the buffers; those of sizes that the run tells come from the program.
        params: the integers that the code reads; it writes those that depend on such sizes.
        arena: the memory of the other intermediates.
    """

    __slots__ = ("_made", "_plan", "_program", "arena", "params", "table")

    def __init__(
        self, plan: Plan, program: Program, params: Array, arrays: Sequence[Array], arena: Array
    ) -> None:
        self._plan, self._program = plan, program
        self.params, self.arena = params, arena
        self.table = np.zeros(plan.workspace + 1, np.uintp)
        self._made: dict[int, Array] = dict(enumerate([*arrays, *plan.constants]))
        for i, spec in enumerate((*plan.outputs, *plan.temporaries), start=plan.first_output):
            if is_static(spec.shape):
                self._made[i] = self.empty(tuple(spec.shape), spec.dtype.dtype)  # type: ignore[arg-type]  # fixed
        self._made[plan.arena] = arena
        for (number, axis), place in program.given.items():
            params[place] = arrays[number].shape[axis]
        for i, array in self._made.items():
            self.table[i] = array.__array_interface__["data"][0]

    def output(self, number: int) -> Array:
        """An output; one of a size that the run has told is copied out of the program's memory.

        Raises:
            MemoryError, ValueError: NumPy has no array of its size.
        """
        buffer = self._plan.first_output + number
        array = self._made.get(buffer)
        if array is not None:
            return array
        shape = [int(self.params[place]) for place in self._program.output_shapes[number]]
        return self._copied(buffer, self._plan.outputs[number], shape)

    def _copied(self, buffer: int, spec: TensorSpec, shape: Sequence[int]) -> Array:
        made = np.empty(shape, spec.dtype.dtype)
        if made.nbytes:
            ctypes.memmove(made.__array_interface__["data"][0], int(self.table[buffer]), made.nbytes)
        return made

    def release(self) -> None:
        """Free what the program has taken."""
        for buffer in self._program.rooms:
            if buffer not in self._made:
                self.free(int(self.table[buffer]))

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Memory of an output or an intermediate of a fixed size."""
        return np.empty(shape, dtype)

    def input_of_host(self, array: Array) -> Array:
        """What a node's own kernel reads, for a view of a buffer."""
        return array

    def result_of_host(self, node: Node, array: Array) -> Array:
        """The buffer of a result of a node's own kernel."""
        return array

    def free(self, address: int) -> None:
        """Free memory that the program has allocated."""
        _free(address)

    def host(self, call: CallRoutine, effect_log: EffectLog | None) -> None:
        """Run a node's own kernel; its results become the buffers of their places."""
        known = {
            variable: int(self.params[place]) for variable, place in self._program.variable_places.items()
        }
        node = call.node
        given = [
            self.input_of_host(self._view(layout, v.spec, known))
            for layout, v in zip(call.inputs, node.inputs, strict=True)
        ]
        attrs = {name: bind_sizes(value, known) for name, value in node.attrs.items()}
        now = Node(node.op, node.inputs, attrs, node.specs, node.origin, node.also)
        results = run_host_kernel(now, given, effect_log)
        check_results(node, [Shape(bind_sizes(tuple(v.spec.shape), known)) for v in node.outputs], results)
        for layout, value, result in zip(call.outputs, node.outputs, results, strict=True):
            made = np.ascontiguousarray(result, value.spec.dtype.dtype).reshape(np.shape(result))
            if any(np.may_share_memory(made, x) for x in given):  # a kernel may return what it was given
                made = made.copy()
            self._made[layout.buffer] = made = self.result_of_host(node, made)
            self.table[layout.buffer] = made.__array_interface__["data"][0]
            if layout.buffer in self._program.rooms:
                self.params[self._program.rooms[layout.buffer]] = made.nbytes

    def _view(self, layout: Layout, spec: TensorSpec, known: dict[SizeVariable, int]) -> Array:
        """The array at ``layout``: where a size is open, the one that an earlier host call returned."""
        if None in spec.shape:
            return self._made[layout.buffer]
        dtype = spec.dtype.dtype
        shape = [evaluate_size(d, known) for d in spec.shape]  # type: ignore[arg-type]  # no size is open
        strides = [evaluate_size(s, known) * dtype.itemsize for s in layout.strides]
        start = int(self.table[layout.buffer]) + evaluate_size(layout.offset, known) * dtype.itemsize
        if 0 in shape:
            return np.empty(shape, dtype)
        before = sum((d - 1) * s for d, s in zip(shape, strides, strict=True) if s < 0)
        extent = sum((d - 1) * abs(s) for d, s in zip(shape, strides, strict=True)) + dtype.itemsize
        memory = (ctypes.c_char * extent).from_address(start + before)
        flat = np.ndarray((1,), dtype, memory, -before)
        return strided(flat, shape, [s // dtype.itemsize for s in strides])


def run_host_kernel(node: Node, given: Sequence[Array], effect_log: EffectLog | None) -> Sequence[Array]:
    """What a node's own kernel makes; ``effect_log`` remembers what must not run twice."""
    if effect_log is None:
        return run_node(node, given)
    with observed(effect_log.follow):
        return effect_log.follow(node, given)
