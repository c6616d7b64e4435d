"""The measurements of :func:`dualflow.compare`, as data."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from dualflow.core.records import dataclass
from dualflow.graph.compiled import CodeSource, PartReport

if TYPE_CHECKING:
    from dualflow.function.inspect.agreement import Difference
    from dualflow.function.inspect.pass_graphs import PassGraph
    from dualflow.function.inspect.timeline import Timelines, TimelineStep
    from dualflow.graph.analysis import Workload
    from dualflow.graph.ir import Origin

_PAGE_ONLY = ("definition", "timelines", "pass_graphs", "listing", "timeline")
"""Fields for the page only, which plain data leaves out."""


@dataclass(frozen=True, slots=True)
class Fused:
    """The ops that one kernel computes: its name, their names, and the user's lines that call them."""

    kernel: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a graph before its first result, in seconds.

    Attributes:
        trace: running the Python function once with symbolic tensors.
        passes: the passes of the graph.
        emission: the memory plan, and writing the code as LLVM IR.
        compilation: compilation by LLVM, if the object cache is empty; without the import of LLVM, once per
            process.
        linking: loading the object code.
        paid: the time that this process has spent on compilation and linking.
        source: the source of the code: this process compiled it, an earlier one did (``disk``), another
            function of this process has the same code (``process``), or there is no native code.
    """

    trace: float
    passes: float
    emission: float
    compilation: float
    linking: float
    paid: float
    source: CodeSource

    @property
    def warm(self) -> float:
        """The total compile time when the object code is in the cache on disk."""
        return self.trace + self.passes + self.emission + self.linking

    @property
    def cold(self) -> float:
        """The total compile time if the cache on disk is empty."""
        return self.warm + self.compilation


@dataclass(frozen=True, slots=True)
class DeviceMeasurements:
    """The measurements of a function on a device other than the CPU.

    Attributes:
        device: the device, such as "/GPU:0".
        description: the numbers of kernels and transfers of a call, and the name of the hardware.
        seconds: the time of one call, with its transfers: the best of several rounds after warm-up.
        compile_seconds: the time to plan, emit and compile the program for the device.
        peak_bytes: the memory of the device that a call takes, by the plan; None if sizes depend on data.
        transferred: the bytes that a call moves between the memories.
        difference: between the results of the eager call and those of the device.
        timeline: the steps of a call; not in :meth:`Measurements.as_dict`.
        listing: the kernels as OpenCL C; not in :meth:`Measurements.as_dict`.
    """

    device: str
    description: str
    seconds: float
    compile_seconds: float
    peak_bytes: int | None
    transferred: int
    difference: Difference
    timeline: tuple[TimelineStep, ...]
    listing: str


@dataclass(frozen=True, slots=True)
class Measurements:
    """The measurements of a function, eager and compiled.

    Attributes:
        name: the name of the function.
        arguments: the specs of the arguments.
        argument_bytes: the bytes of the tensors among them.
        eager_seconds, graph_seconds: the time of one call: the best of several rounds of calls after warm-up.
        eager_peak_bytes, graph_peak_bytes: the peak memory of one call beyond arguments and variables,
            including results: allocations of Python and NumPy, and the graph's arena, which stays allocated
            between calls.
        eager_ops: the number of runs of each op in an eager call.
        nodes: the number of nodes of the graph as traced.
        kernels, blas_calls, host_calls: the numbers of each in one call of the compiled graph.
        fused: the kernels that compute several ops.
        parts: how each part of the graph runs.
        recomputation_ratio: the work of the kernels, divided by that of their ops if each is computed once.
        tasks: the number of tasks that may run at the same time; 0 if all calls run in order.
        workload: the work of a call, and its longest chain of dependent steps; the steps are those of the
            optimised graph.
        costs: the costs before the first result.
        difference: between the results, and between the variables after the call.
        updated: the names of the variables that a call assigns.
        devices: the measurements on other devices.
        definition: the line that defines the function; None for a callable that is none. Not in
            :meth:`as_dict`.
        timelines: the steps of a call, and their memory; not in :meth:`as_dict`.
        pass_graphs: the graphs between the passes; not in :meth:`as_dict`.
        listing: the compiled program as Python source; not in :meth:`as_dict`.
    """

    name: str
    arguments: str
    argument_bytes: int
    eager_seconds: float
    graph_seconds: float
    eager_peak_bytes: int
    graph_peak_bytes: int
    eager_ops: dict[str, int]
    nodes: int
    kernels: int
    blas_calls: int
    host_calls: int
    fused: tuple[Fused, ...]
    parts: tuple[PartReport, ...]
    recomputation_ratio: float
    tasks: int
    workload: Workload
    costs: Costs
    difference: Difference
    updated: tuple[str, ...]
    devices: tuple[DeviceMeasurements, ...]
    definition: Origin | None
    timelines: Timelines
    pass_graphs: tuple[PassGraph, ...]
    listing: str

    @property
    def speedup(self) -> float:
        """Eager time divided by graph time."""
        return self.eager_seconds / self.graph_seconds

    @property
    def break_even(self) -> int | None:
        """The number of calls after which the graph's total time, with compiling, is less; None if never."""
        return self._break_even(self.costs.cold)

    @property
    def break_even_warm(self) -> int | None:
        """As :attr:`break_even`, if the object code is on disk from an earlier process."""
        return self._break_even(self.costs.warm)

    def _break_even(self, cost: float) -> int | None:
        saved = self.eager_seconds - self.graph_seconds
        return math.ceil(cost / saved) if saved > 0 else None

    def as_dict(self) -> dict[str, Any]:
        """The measurements as a dict that JSON can represent; numbers that are not finite are None."""
        fields: dict[str, Any] = _plain(self)
        fields |= {"speedup": self.speedup, "break_even": self.break_even}
        fields |= {"break_even_warm": self.break_even_warm, "agrees": self.difference.agrees}
        fields["workload"]["parallelism"] = self.workload.parallelism
        for device, measured in zip(fields["devices"], self.devices, strict=True):
            device["agrees"] = measured.difference.agrees
        return fields


def _plain(value: Any) -> Any:
    """Plain data: dataclasses as dicts without the fields for the page only, infinite numbers as None."""
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value) if field.name not in _PAGE_ONLY)
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
