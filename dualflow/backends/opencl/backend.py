"""The OpenCL backend: graphs as kernels and transfers that a device runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from dualflow.backends.opencl.capabilities import capabilities
from dualflow.backends.opencl.executable import OpenCLExecutable
from dualflow.backends.opencl.listing import kernel_names
from dualflow.backends.opencl.program import DeviceProgram
from dualflow.backends.opencl.steps import HostCall, Launch, walk_steps
from dualflow.backends.opencl.timed_call import TimedDeviceCall
from dualflow.graph.compiled import (
    Array,
    CompileCosts,
    Compiled,
    CompileStats,
    Footprint,
    KernelReport,
    StepTime,
    StepTimer,
)
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.step_recorder import StepRecorder
from dualflow.schedule import plan as planning
from dualflow.sizes.symbolic_sizes import typical


def build(graph: Graph, options: CompileOptions) -> Compiled:
    """Compile ``graph``, whose passes have run.

    Raises:
        UndecidedSize: a size depends on data.
        NotFoundError: there is no device.
    """
    return OpenCLExecutable(graph, options)


def footprint(graph: Graph, *, in_order: bool = True) -> Footprint:
    """The memory of the device that a call of ``graph`` takes; its calls always run in order."""
    return planning.footprint(graph, capabilities())


def compile_stats(compiled: OpenCLExecutable) -> CompileStats:
    """The kernels, products and host calls of the program."""
    steps = list(walk_steps(compiled.program.steps))
    launches = [step for step in steps if isinstance(step, Launch)]
    names = kernel_names(compiled.program)
    kernels = [s for s in launches if not s.is_product and s.nodes]
    return CompileStats(
        kernels=tuple([KernelReport(names[s.kernel.text], s.nodes) for s in kernels]),
        products=sum(step.is_product for step in launches),
        host_calls=sum(isinstance(step, HostCall) for step in steps),
        arena_bytes=typical(compiled.program.plan.arena_bytes),
        keeps_arena=False,
        recomputation_ratio=compiled.program.recomputation_ratio,
    )


def costs(compiled: OpenCLExecutable) -> CompileCosts:
    """The costs of compiling: planning and emission are measured now, the driver's was when it compiled."""
    started = time.perf_counter()
    DeviceProgram(compiled.graph, compiled.options, compiled.device)
    emission = time.perf_counter() - started
    seconds = compiled.compile_seconds
    return CompileCosts(
        emission=emission, compilation=seconds, linking=0.0, paid=seconds, source=compiled.origin
    )


def step_timer(compiled: OpenCLExecutable) -> StepTimer:
    """A function that runs a call and times each step; the host waits for the device after each."""

    def timed(arrays: Sequence[Array]) -> list[StepTime]:
        recorder = StepRecorder()
        compiled.run(arrays, begin_call=partial(TimedDeviceCall, recorder))
        return recorder.times()

    return timed
