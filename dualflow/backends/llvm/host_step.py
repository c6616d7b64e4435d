"""Host calls of a compiled graph, with what is known before they run: layouts, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.strided import row_major, strided
from dualflow.graph.effect_log import EffectLog, run_host_kernel
from dualflow.graph.ir import Node
from dualflow.graph.symbolic_evaluation import with_numbers
from dualflow.ops.record import Effect
from dualflow.schedule.call_reports import check_results
from dualflow.schedule.nest import Layout, contiguous_strides
from dualflow.schedule.program_statements import CallRoutine
from dualflow.sizes.symbolic_sizes import SizeVariable, bind_sizes

Array = np.ndarray[Any, Any]


class HostInput(NamedTuple):
    """An input of a host call; ``in_order`` is whether its buffer can be passed without a view."""

    layout: Layout
    shape: tuple[int | None, ...]
    in_order: bool


class HostOutput(NamedTuple):
    """An output of a host call: its buffer and dtype."""

    buffer: int
    dtype: np.dtype[Any]


class HostStep(NamedTuple):
    """A node that runs as a NumPy kernel between native parts; ``sizes`` are those of graphs inside it."""

    call: CallRoutine
    node: Node
    inputs: tuple[HostInput, ...]
    outputs: tuple[HostOutput, ...]
    shapes: tuple[Shape | None, ...]
    sizes: Mapping[SizeVariable, int] | None = None

    @classmethod
    def of(cls, call: CallRoutine) -> HostStep:
        """The step that runs ``call``; symbolic sizes in it are replaced later by :meth:`with_sizes`."""
        node = call.node
        inputs = [
            _input(node, layout, tuple(v.spec.shape))
            for layout, v in zip(call.inputs, node.inputs, strict=True)
        ]
        outputs = [
            HostOutput(layout.buffer, v.spec.dtype.dtype)
            for layout, v in zip(call.outputs, node.outputs, strict=True)
        ]
        shapes = [v.spec.shape if v.spec.shape.is_static else None for v in node.outputs]
        return cls(call, node, tuple(inputs), tuple(outputs), tuple(shapes))

    def with_sizes(self, bound: Mapping[SizeVariable, int]) -> HostStep:
        """The step with size variables replaced by the numbers ``bound``."""
        node = with_numbers(self.node, bound)
        inputs = [
            _input(node, _bound_layout(x.layout, bound), bind_sizes(x.shape, bound)) for x in self.inputs
        ]
        shapes = [None if x is None else Shape(bind_sizes(tuple(x), bound)) for x in self.shapes]
        return self._replace(node=node, inputs=tuple(inputs), shapes=tuple(shapes), sizes=bound)

    def run(self, buffers: list[Array], effect_log: EffectLog | None) -> None:
        """Run the kernel, and store its results in the buffer table."""
        inputs = [_view(buffers, x) for x in self.inputs]
        results = run_host_kernel(self.node, inputs, effect_log, self.sizes)
        check_results(self.node, self.shapes, results)
        for (buffer, dtype), result in zip(self.outputs, results, strict=True):
            buffers[buffer] = _own(result, dtype, inputs)


def _bound_layout(layout: Layout, bound: Mapping[SizeVariable, int]) -> Layout:
    return Layout(layout.buffer, bind_sizes(layout.offset, bound), bind_sizes(layout.strides, bound))


def _input(node: Node, layout: Layout, shape: tuple[int | None, ...]) -> HostInput:
    """The input for a layout. Python functions get read-only views; kernels of ops don't write to inputs."""
    is_static = None not in shape
    in_order = is_static and layout.offset == 0 and layout.strides == contiguous_strides(shape)
    return HostInput(layout, shape, in_order and node.effect is not Effect.PYTHON)


def _view(buffers: list[Array], argument: HostInput) -> Array:
    layout, shape, in_order = argument
    buffer = buffers[layout.buffer]
    # if a size is unknown, it is the result of another host call
    if None in shape or (in_order and buffer.shape == shape):
        return buffer
    return strided(buffer.reshape(-1)[layout.offset :], shape, layout.strides)  # type: ignore[arg-type]  # no size is unknown


def _own(result: Any, dtype: np.dtype[Any], inputs: Sequence[Array]) -> Array:
    """A result in row-major order, which shares no memory with the inputs."""
    array: Array = result
    if type(array) is not np.ndarray or array.dtype is not dtype or not array.flags.c_contiguous:
        array = row_major(np.asarray(result, dtype))
    if array.flags.owndata and not any(array is x or array is x.base for x in inputs):
        return array
    return array.copy() if any(np.may_share_memory(array, x) for x in inputs) else array
