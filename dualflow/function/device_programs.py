"""Device programs of eager ops: an op is compiled as a graph of one node, by the backend "opencl".

An op that would run on the host has no program. This depends only on the op, its attributes, and the dtypes
and shapes of its inputs. Programs of several shapes have the same kernels, whose texts have no sizes: for a
new shape only a plan is made.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextvars import Context
from functools import partial
from typing import Any, Final

from dualflow.core.exact_equality import exact_attrs
from dualflow.core.spec import TensorSpec
from dualflow.eager.device_tensor import DeviceStorage
from dualflow.eager.kernel_slot import Computation, computation_name
from dualflow.eager.placed_ops import DEVICE_PROGRAMS, DeviceProgram
from dualflow.eager.tensor import EagerTensor
from dualflow.function.calls.array_ownership import device_value
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.eager_kernels import is_plain, remember
from dualflow.function.options import DEVICE_CODE, compile_options
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import Graph
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.ops.record import Op

_MAX_PROGRAMS: Final = 1024
_programs: Final[dict[Hashable, DeviceProgram | str]] = {}


@DEVICE_PROGRAMS.fill
def device_program(
    what: Computation, inputs: Sequence[EagerTensor], attrs: dict[str, Any], count: int | None
) -> DeviceProgram | str:
    """The device program of an op, or of a function that returns ``count`` numbers.

    If an op has none, the reason. Raises the error of an op that rejects the inputs.
    """
    if not all(map(is_plain, attrs.values())):
        return "an attribute is a Python object"
    specs = [x.spec for x in inputs]
    key = what, exact_attrs(attrs), count, *[(s.dtype, tuple(s.shape)) for s in specs]
    program = _programs.get(key)
    if program is None:
        attributes = attrs if count is None else {**attrs, "count": count}
        program = Context().run(_new_program, what, specs, attributes)
        remember(_programs, key, program, _MAX_PROGRAMS)
    return program


def _new_program(
    what: Computation, specs: Sequence[TensorSpec], attrs: dict[str, Any]
) -> DeviceProgram | str:
    if any(spec.dtype.is_string for spec in specs):
        return "strings are in the memory of the host"
    compiled = CompiledGraph(_graph(what, specs, attrs), compile_options(DEVICE_CODE))
    executable: Any = compiled.executable
    for part in executable.parts:
        if part.node is not None:
            return part.reason or f"{part.what} runs on the host"
    return partial(_run, executable)


def _graph(what: Computation, specs: Sequence[TensorSpec], attrs: dict[str, Any]) -> Graph:
    """The graph of the op or function alone."""
    tracer = Tracer(computation_name(what), options=compile_options(DEVICE_CODE))
    with tracing(tracer):
        inputs = tuple([tracer.argument(spec) for spec in specs])
        results = tracer.run(what, inputs, attrs) if isinstance(what, Op) else what(*inputs, **attrs)
    outputs = results if isinstance(results, tuple) else (results,)
    return eliminate_dead_code(tracer.builder.finish([tracer.lift(x)._value for x in outputs]))


def _run(executable: Any, inputs: Sequence[EagerTensor]) -> list[DeviceStorage]:
    outputs: list[DeviceStorage] = executable.run_on_device([device_value(x) for x in inputs]).outputs
    return outputs
