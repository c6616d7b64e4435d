"""Executables of the OpenCL backend, and reports on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pyopencl as cl

from dualflow.backends.opencl.device_array import DeviceArray, upload
from dualflow.backends.opencl.devices import OpenCLDevice, current_device
from dualflow.backends.opencl.program import ON_HOST, DeviceProgram, Placement
from dualflow.backends.opencl.running import DeviceCall, DeviceResults, FailedCheck
from dualflow.backends.opencl.steps import HostCall, Launch, Transfer, device_reads, walk_steps
from dualflow.backends.opencl.transfers import transfers_of
from dualflow.core.errors import ResourceExhaustedError
from dualflow.core.memory_errors import graph_out_of_memory, is_out_of_memory
from dualflow.core.spans import span
from dualflow.graph.compiled import CodeSource, GraphInputs, PartKind, PartReport, count_text
from dualflow.graph.effect_log import EffectLog, Halted
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.symbolic_size_ops import first_axes
from dualflow.schedule.call_reports import OUT_OF_BOUNDS, check_error, host_report, size_error
from dualflow.schedule.element_ranges import ElementRange
from dualflow.schedule.planned import Plan
from dualflow.sizes.symbolic_sizes import SizeFactor, evaluate_size

Array = np.ndarray[Any, Any]


class OpenCLExecutable:
    """A compiled graph.

    Attributes:
        graph: what it computes, after all passes.
        options: the compile options.
        device: the device that runs it.
        program: the plan, and its steps.
        compile_seconds: the time of the driver to compile the kernels.
        origin: where they come from; see :class:`dualflow.graph.compiled.CompileCosts`.
        placement: of the latest call, for reports.
    """

    __slots__ = (
        "_axes",
        "_constants",
        "compile_seconds",
        "device",
        "graph",
        "inputs",
        "options",
        "origin",
        "placement",
        "program",
    )

    updates_in_place = False

    def __init__(self, graph: Graph, options: CompileOptions) -> None:
        self.graph, self.options = graph, options
        self.inputs = GraphInputs.of(graph)
        self.device: OpenCLDevice = current_device()
        self.program = DeviceProgram(graph, options, self.device)
        self.placement = ON_HOST
        self._axes = tuple(first_axes(self.program.plan.argument_sizes).items())
        self._constants = self._constants_on_device()
        launches = [s for s in walk_steps(self.program.steps) if isinstance(s, Launch)]
        texts = [s.kernel.text for s in launches if not self.device.has_kernel(s.kernel.text)]
        begun = time.perf_counter()
        for text in texts:
            self.device.kernel(text)
        self.compile_seconds = time.perf_counter() - begun if texts else 0.0
        self.origin = CodeSource.COMPILED if texts else CodeSource.PROCESS if launches else CodeSource.NONE

    @property
    def plan(self) -> Plan:
        """The plan: calls and buffers."""
        return self.program.plan

    def _constants_on_device(self) -> dict[int, DeviceArray]:
        """The constants that steps on the device read, by the numbers of their buffers."""
        plan, read = self.program.plan, device_reads(self.program.steps)
        purpose = f"a constant of {self.graph.name}"
        numbers = [i for i in range(plan.inputs, plan.first_output) if i in read]
        return {i: upload(plan.constants[i - plan.inputs], purpose) for i in numbers}

    @property
    def parts(self) -> tuple[PartReport, ...]:
        """A report for each part of the graph: how it runs, and the transfers of the latest call."""
        placed = self.program.with_transfers(self.placement)
        steps = list(walk_steps(placed))
        launches = [s for s in steps if isinstance(s, Launch)]
        what = f"{count_text(len(launches), 'kernel')} through OpenCL on {self.device.name}"
        once, repeated = (_moved(transfers) for transfers in transfers_of(placed))
        moved = once or ("" if repeated else "no transfers (0 bytes)")
        in_loops = f"in each iteration of a loop {repeated}" if repeated else ""
        native = PartReport(PartKind.NATIVE, "; ".join(filter(None, [what, moved, in_loops])))
        return (native, *(_host_report(s) for s in steps if isinstance(s, HostCall)))

    def run(
        self,
        arrays: Sequence[Array],
        effect_log: EffectLog | None = None,
        *,
        begin_call: Callable[..., DeviceCall] = DeviceCall,
    ) -> list[Array]:
        """The graph's outputs. If it raises, no variable has been written to.

        Args:
            arrays: one for each input of the graph, C-contiguous, of the input's dtype and shape. Those of
                updated variables are written to.
            effect_log: records what runs on the host, and what ended the call if it fails.
            begin_call: creates the state of the call.

        Raises:
            InvalidArgumentError: a check inside the graph failed.
            ResourceExhaustedError: the device or the host has no memory.
            FailedPreconditionError: the device has failed, or this process is forked from one that used it.
        """
        outputs, updated = self._results(arrays, ON_HOST, effect_log, begin_call)
        for i, value in zip(self.program.updated, updated, strict=True):
            if value is not arrays[i]:
                arrays[i][...] = value
        return [np.asarray(x) for x in outputs]

    def run_on_device(
        self, values: Sequence[Array | DeviceArray], effect_log: EffectLog | None = None
    ) -> DeviceResults:
        """The graph's outputs on the device, and the new values of updated variables.

        Args:
            values: one for each input, as for :meth:`run`, on the host or on the device. None is written to.
            effect_log: as for :meth:`run`.

        The new value of a variable is where its value is. Raises as :meth:`run` does.
        """
        inputs = frozenset([i for i, x in enumerate(values) if type(x) is DeviceArray])
        return self._results(values, Placement(inputs, True), effect_log)

    def _results(
        self,
        values: Sequence[Array | DeviceArray],
        placement: Placement,
        effect_log: EffectLog | None,
        begin_call: Callable[..., DeviceCall] = DeviceCall,
    ) -> DeviceResults:
        self.device.require_own_process()
        self.placement = placement
        sizes = {variable: values[place].shape[axis] for variable, (place, axis) in self._axes}
        try:
            self._check_sizes(sizes)
            with span("native", self.graph.name):
                call = begin_call(
                    self.device, self.program, placement, self._constants, values, sizes, effect_log
                )
                return call.run()
        except FailedCheck as failed:
            _fail(failed, effect_log)
        except ResourceExhaustedError:  # of an op or a buffer, which it names
            raise
        except cl.Error as error:
            raise self.device.failure(self.graph.name, error) from error
        except (MemoryError, ValueError) as error:
            if not is_out_of_memory(error):
                raise
            raise graph_out_of_memory(self.graph.name, error) from None

    def _check_sizes(self, sizes: Mapping[SizeFactor, int]) -> None:
        """Compare sizes of arguments that must be equal, and accesses with the sizes of their buffers."""
        for node in self.program.required if sizes else ():
            x, y = (evaluate_size(node.attrs[name], sizes) for name in ("x", "y"))
            if x != y and not (x == 1 and node.attrs["repeats"]):
                raise FailedCheck(node, partial(size_error, node, sizes))
        for elements, node in self.program.range_checks:
            if not self._is_within(elements, sizes):
                raise FailedCheck(node, partial(check_error, node, OUT_OF_BOUNDS))

    def _is_within(self, elements: ElementRange, sizes: Mapping[SizeFactor, int]) -> bool:
        """Whether there are no elements, or all of them are in their buffer."""
        if any(evaluate_size(count, sizes) < 1 for count in elements.counts):
            return True
        nbytes = self.program.bounds.nbytes[elements.buffer]
        assert nbytes is not None, "all sizes are computed before the program runs"
        first, last = evaluate_size(elements.first, sizes), evaluate_size(elements.nbytes, sizes)
        return first >= 0 and last <= evaluate_size(nbytes, sizes)


def _fail(failed: FailedCheck, effect_log: EffectLog | None) -> NoReturn:
    """End the call with the error of a check that failed.

    Its message may read variables, so with an effect log the error is created after these are committed.
    """
    if effect_log is None:
        raise failed.make() from None
    effect_log.node, effect_log.make = failed.node, failed.make
    raise Halted


def _moved(transfers: Sequence[Transfer]) -> str:
    """The number of transfers in each direction, with their bytes unless sizes are symbolic."""
    texts = []
    for to_device in (True, False):
        sizes = [t.nbytes for t in transfers if t.to_device is to_device]
        total = sum(sizes)
        nbytes = f" ({total:,} bytes)" if type(total) is int else ""
        if sizes:
            place = "device" if to_device else "host"
            texts.append(f"{count_text(len(sizes), 'transfer')} to the {place}{nbytes}")
    return ", ".join(texts)


def _host_report(call: HostCall) -> PartReport:
    node: Node = call.node
    body = body_of(node)
    if body is None:
        return host_report(node)._replace(reason=call.reason)
    return PartReport(PartKind.NUMPY, body.name, call.reason, node)
