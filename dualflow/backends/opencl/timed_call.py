"""Calls that time each step: the host waits for the device after each command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.backends.opencl.listing import kernel_names
from dualflow.backends.opencl.running import DeviceCall
from dualflow.backends.opencl.steps import (
    CopyOnDevice,
    HostBranch,
    HostCall,
    HostLoop,
    Launch,
    Require,
    Step,
    Transfer,
    WriteSizes,
)
from dualflow.graph.compiled import TimedKind
from dualflow.graph.ir import Node
from dualflow.graph.step_recorder import StepRecorder


class TimedDeviceCall(DeviceCall):
    """A call whose steps ``recorder`` times; reading the status word is a wait."""

    def __init__(self, recorder: StepRecorder, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._recorder = recorder
        self._names = kernel_names(self._program)
        self._bodies: set[int] = set()

    def _run(self, steps: Sequence[Step]) -> None:
        if id(steps) in self._bodies:
            self._recorder.count_iteration()
        for step in steps:
            if isinstance(step, HostLoop):
                self._bodies.add(id(step.body))
            kind, node, label, nbytes = self._described(step)
            kernel = self._names[step.kernel.text] if isinstance(step, Launch) else ""
            with self._recorder.step(id(step), kind, node, nbytes=nbytes, label=label, kernel=kernel):
                super()._run((step,))
                self._device.queue.finish()

    def _read_status(self) -> None:
        if self._status is not None and self._launched:
            with self._recorder.step("status", TimedKind.WAIT, None, label="wait for the status"):
                super()._read_status()

    def _described(self, step: Step) -> tuple[TimedKind, Node | None, str, int]:
        """The kind of a step, its node, its name if it has none, and the bytes that it transfers."""
        match step:
            case Launch():
                return TimedKind.PRODUCT if step.is_product else TimedKind.KERNEL, step.node, "", 0
            case Transfer():
                direction = "to the device" if step.to_device else "to the host"
                return TimedKind.TRANSFER, None, direction, self._buffers.size(step.nbytes)
            case CopyOnDevice():
                return TimedKind.COPY, step.node, "", 0
            case WriteSizes():
                return TimedKind.TRANSFER, None, "sizes to the device", len(step.values) * step.dtype.size
            case HostCall():
                return TimedKind.HOST, step.node, "", 0
            case Require():
                return TimedKind.WAIT, step.node, "", 0
            case HostBranch() | HostLoop():
                return TimedKind.CONTROL, step.node, "", 0
