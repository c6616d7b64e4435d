"""Measures a function on a device other than the CPU, for ``compare``."""

from __future__ import annotations

from typing import Any

from dualflow.core.device_names import is_gpu
from dualflow.core.errors import InvalidArgumentError
from dualflow.eager.devices import gpu_count
from dualflow.function.calls.lazy_backends import device_listing
from dualflow.function.decorator import function
from dualflow.function.inspect.agreement import compared
from dualflow.function.inspect.inspected import InspectedCall, inspect_call
from dualflow.function.inspect.measure import best_times
from dualflow.function.inspect.measurements import DeviceMeasurements
from dualflow.function.inspect.timeline import TimelineStep, graph_steps, planned_memory
from dualflow.function.options import DEVICE_CODE
from dualflow.graph.compiled import PartKind, TimedKind


def require_device(device: Any) -> None:
    """Raise unless ``device`` is the name of a GPU that this process can use.

    Raises:
        InvalidArgumentError: it is another name, or there is no such device.
    """
    if not isinstance(device, str) or not is_gpu(device):
        raise InvalidArgumentError(
            f"{device!r} is no device to compare with the CPU, such as '/GPU:0'. The CPU is always measured."
        )
    if not gpu_count():
        raise InvalidArgumentError(
            f"{device!r} is not available: df.config.list_physical_devices('GPU') is empty. Install an "
            "OpenCL driver and dualflow[gpu]; DUALFLOW_OPENCL=all counts CPUs with a driver, too."
        )


def measure_on_device(call: InspectedCall, device: str) -> DeviceMeasurements:
    """The measurements of a call whose function is compiled for ``device``."""
    python_function = call.traced.python_function
    compiled_for_device = function(python_function, backend=DEVICE_CODE, name=call.concrete.name)
    with inspect_call("compare", compiled_for_device, call.args, call.kwargs) as own:
        compiled = own.concrete.with_static_shapes(own.inputs).compiled
        outcome = own.outcome(eagerly=False)
        (seconds,) = best_times([own.timed_call(eagerly=False)])
        steps = graph_steps(own, compiled, {})
        executable, planned = compiled.executable, planned_memory(compiled)
        costs = compiled.backend.costs(executable)
        descriptions = [part.what for part in executable.parts if part.kind is PartKind.NATIVE]
        return DeviceMeasurements(
            device=device,
            description="; ".join(descriptions) or "nothing runs on the device",
            seconds=seconds,
            compile_seconds=costs.emission + costs.compilation + costs.linking,
            peak_bytes=None if planned is None else planned.peak,
            transferred=_transferred_bytes(steps),
            difference=compared(call.outcome(eagerly=True), outcome),
            timeline=steps,
            listing=device_listing(executable) if compiled.options.backend == DEVICE_CODE else "",
        )


def _transferred_bytes(steps: tuple[TimelineStep, ...]) -> int:
    """The bytes that a call moves between the memories, by its timeline."""
    return sum(step.runs * step.nbytes for step in steps if step.kind == TimedKind.TRANSFER)
