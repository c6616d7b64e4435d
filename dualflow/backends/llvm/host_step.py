"""A host call of a compiled graph: what can be known of it before any call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.sized_call import run_host_kernel
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.strided import strided
from dualflow.graph.effect_log import EffectLog
from dualflow.graph.ir import Node
from dualflow.ops.record import Effect
from dualflow.schedule.call_reports import check_results
from dualflow.schedule.nest import Layout, contiguous_strides
from dualflow.schedule.statements import CallRoutine

Array = np.ndarray[Any, Any]


class HostInput(NamedTuple):
    """An input; ``whole`` if it may be the buffer itself, where that has the input's shape."""

    layout: Layout
    shape: tuple[int | None, ...]
    whole: bool


class HostOutput(NamedTuple):
    """An output, and the buffer that it becomes."""

    buffer: int
    dtype: np.dtype[Any]


class HostStep(NamedTuple):
    """A node of a program that runs as its own kernel."""

    call: CallRoutine
    node: Node
    given: tuple[HostInput, ...]
    made: tuple[HostOutput, ...]
    shapes: tuple[Shape | None, ...]

    @classmethod
    def of(cls, call: CallRoutine) -> HostStep:
        """The step for ``call``."""
        node = call.node
        given = [
            _given(node, layout, v.spec.shape) for layout, v in zip(call.inputs, node.inputs, strict=True)
        ]
        made = [
            HostOutput(layout.buffer, v.spec.dtype.dtype)
            for layout, v in zip(call.outputs, node.outputs, strict=True)
        ]
        shapes = [v.spec.shape if v.spec.shape.is_static else None for v in node.outputs]
        return cls(call, node, tuple(given), tuple(made), tuple(shapes))

    def run(self, buffers: list[Array], effect_log: EffectLog | None) -> None:
        """Run the kernel; its results become the buffers of their places."""
        given = [_view(buffers, x) for x in self.given]
        results = run_host_kernel(self.node, given, effect_log)
        check_results(self.node, self.shapes, results)
        for (buffer, dtype), result in zip(self.made, results, strict=True):
            buffers[buffer] = _own(result, dtype, given)


def _given(node: Node, layout: Layout, shape: Sequence[int | None]) -> HostInput:
    """Users' functions get views that they can't write to; ops' kernels don't write to their inputs."""
    known = None not in shape
    in_order = known and layout.offset == 0 and layout.strides == contiguous_strides(shape)
    return HostInput(layout, tuple(shape), in_order and node.effect is not Effect.PYTHON)


def _view(buffers: list[Array], given: HostInput) -> Array:
    layout, shape, whole = given
    buffer = buffers[layout.buffer]
    if None in shape or (whole and buffer.shape == shape):  # where a size is open, a host call has told it
        return buffer
    return strided(buffer.reshape(-1)[layout.offset :], shape, layout.strides)  # type: ignore[arg-type]  # no size is open


def _own(result: Any, dtype: np.dtype[Any], given: Sequence[Array]) -> Array:
    """A result in row-major order, in memory that it doesn't share with what the kernel was given."""
    made: Array = result
    if type(made) is not np.ndarray or made.dtype is not dtype or not made.flags.c_contiguous:
        made = np.ascontiguousarray(result, dtype).reshape(np.shape(result))
    if made.flags.owndata and not any(made is x or made is x.base for x in given):
        return made
    return made.copy() if any(np.may_share_memory(made, x) for x in given) else made
