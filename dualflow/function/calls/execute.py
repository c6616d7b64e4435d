"""Runs an executable on tensors and variables, and returns tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dualflow.core.device_names import CPU, GPU
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.records import NamedTuple
from dualflow.core.spans import span
from dualflow.eager.device_tensor import DeviceStorage, DeviceTensor, on_device
from dualflow.eager.placement import BLOCK_DEVICE, PLACEMENT_LOG
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.eager.updates import VariableUpdate, commit, tensor_of
from dualflow.function.calls.array_ownership import call_arrays, device_values, written_arrays
from dualflow.graph.compiled import PartKind, PartReport
from dualflow.graph.effect_log import EffectLog

if TYPE_CHECKING:
    from dualflow.function.calls.failed_calls import AssignmentHistory
    from dualflow.graph.compiled import Compiled, GraphInputs

Array = np.ndarray[Any, Any]


class DeviceOutputs(Protocol):
    """The results of a device program.

    Attributes:
        outputs: on the device, or on the host if a block of the CPU computes them.
        updated: each variable's new value, on its device.
    """

    outputs: Sequence[Array | DeviceStorage]
    updated: Sequence[Array | DeviceStorage]


class DeviceExecutable(Protocol):
    """A compiled graph that runs on a device, and leaves its outputs where they are computed."""

    inputs: GraphInputs

    @property
    def parts(self) -> Sequence[PartReport]:
        """How each part of the graph runs, and the transfers of the latest call."""
        ...

    def run_on_device(
        self, values: Sequence[Array | DeviceStorage], effect_log: EffectLog | None = None
    ) -> DeviceOutputs:
        """The results for a value of each input, on the host or on the device."""
        ...


class Sources(NamedTuple):
    """The captures of a graph, and which of its inputs it updates.

    Attributes:
        captured: the variable or tensor of each capture: the inputs after the arguments.
        written: the numbers of the inputs that are variables with updates.
    """

    captured: tuple[Any, ...]
    written: tuple[int, ...]

    @classmethod
    def of(cls, inputs: GraphInputs) -> Sources:
        """Those of a graph with these inputs."""
        return cls(tuple([c.source for c in inputs.captures]), inputs.updated)


def is_placed_on_device(sources: Sequence[Any]) -> bool:
    """Whether a call with these tensors and variables runs on the GPU.

    That is decided by the innermost block of ``df.device``; outside of all by the sources, of which one is
    on the GPU.
    """
    device = BLOCK_DEVICE.get()
    if device is not None:
        return device == GPU
    for x in sources:
        if type(x) is DeviceTensor:
            return True
        if isinstance(x, AbstractVariable) and type(tensor_of(x)) is DeviceTensor:
            return True
    return False


def execute(
    compiled: Compiled | DeviceExecutable,
    sources: Sources,
    history: AssignmentHistory | None,
    arguments: Sequence[Any],
    *,
    device: bool = False,
) -> tuple[Any, ...]:
    """The outputs of one call, as tensors; variables are updated.

    Args:
        compiled: the executable; one for a device if ``device``.
        sources: the captures of its graph, and which inputs it writes.
        history: replays the assignments before a failure; None if the caller handles failures.
        arguments: a tensor or variable for each argument of the graph.
        device: whether inputs may be on the GPU, and the outputs stay where they are computed.
    """
    inputs, written = (*arguments, *sources.captured), sources.written
    run: Callable[..., tuple[Any, ...]] = _run_on_device if device else _run
    effect_log = None if history is None else history.effect_log()
    try:
        if not written:
            return run(compiled, inputs, (), None, effect_log)
        update = VariableUpdate([inputs[i] for i in written], compiled=True)
        with update.running, update:
            return run(compiled, inputs, written, update, effect_log)
    except BaseException as error:
        if history is None or effect_log is None:
            raise
        recovered = history.recover(error, effect_log, arguments)
    raise recovered


def _run(
    compiled: Compiled,
    inputs: Sequence[Any],
    written: Sequence[int],
    update: VariableUpdate | None,
    effect_log: EffectLog | None,
) -> tuple[Any, ...]:
    """The outputs of one call; all variables get their new values, or none does after an error."""
    if update is None:
        arrays, in_place = call_arrays(inputs), False
    else:
        arrays, in_place = written_arrays(inputs, written, update, in_place=compiled.updates_in_place)
    with span("kernels", compiled.inputs.name):
        results = tuple([wrap(a) for a in compiled.run(arrays, effect_log)])
    if update is not None and not in_place:
        commit(update.locks, [wrap(arrays[i]) for i in written])
    if effect_log is not None:
        effect_log.end()
    return results


def _run_on_device(
    compiled: DeviceExecutable,
    inputs: Sequence[Any],
    written: Sequence[int],
    update: VariableUpdate | None,
    effect_log: EffectLog | None,
) -> tuple[Any, ...]:
    """As :func:`_run`, but each variable's new value stays on the variable's device."""
    locks = () if update is None else update.locks
    values = device_values(inputs, written, locks)
    with span("kernels", compiled.inputs.name):
        outputs, updated = device_results(compiled, values, effect_log)
    commit(locks, updated)
    if effect_log is not None:
        effect_log.end()
    return outputs


def device_results(
    compiled: DeviceExecutable, values: Sequence[Array | DeviceStorage], effect_log: EffectLog | None
) -> tuple[tuple[EagerTensor, ...], list[EagerTensor]]:
    """Run a device program; returns each output where it is, and each variable's new value on its device."""
    results = compiled.run_on_device(values, effect_log)
    if PLACEMENT_LOG.enabled:
        _log_placement(compiled)
    return tuple(map(_tensor, results.outputs)), list(map(_tensor, results.updated))


def _log_placement(compiled: DeviceExecutable) -> None:
    """Print what the latest call of a device program ran, and what it transferred."""
    for part in compiled.parts:
        device, reason = (GPU, "") if part.kind is PartKind.NATIVE else (CPU, f": {part.reason}")
        PLACEMENT_LOG.add_part(compiled.inputs.name, f"{part.what}{reason}", device)


def _tensor(value: Array | DeviceStorage) -> EagerTensor:
    return wrap(value) if isinstance(value, np.ndarray) else on_device(value)
