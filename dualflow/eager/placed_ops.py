"""Ops that a device runs: inputs are copied there, one program computes the op, the result stays.

The device of an op is that of the innermost ``df.device`` block. Outside of all blocks it is the GPU if one
of the inputs is there. An op without device code runs on the host between transfers; without soft placement
that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.core.device_names import CPU, GPU
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.slot import Slot, unfilled
from dualflow.eager.device_tensor import DeviceStorage, on_device, to_device, to_host
from dualflow.eager.kernel_slot import Computation, computation_name
from dualflow.eager.placement import BLOCK_DEVICE, PLACEMENT_LOG, SOFT_PLACEMENT
from dualflow.eager.tensor import EagerTensor
from dualflow.ops.conversion import identity
from dualflow.ops.record import HOST_EFFECTS, Op

DeviceProgram = Callable[[Sequence[EagerTensor]], list[DeviceStorage]]
"""Runs one op, or a function of ops, on the device."""

DEVICE_PROGRAMS: Final[
    Slot[Callable[[Computation, Sequence[EagerTensor], dict[str, Any], int | None], DeviceProgram | str]]
] = Slot("device programs of eager ops", unfilled("device programs of eager ops"))
"""The device program of an op for inputs like these, or the reason why there is none."""


def run_placed(
    op: Op, inputs: tuple[EagerTensor, ...], attrs: dict[str, Any], run_on_host: Callable[..., Any]
) -> Any:
    """The result of an op in a block on a GPU, or of which an input is on a GPU.

    Args:
        op: the op.
        inputs: its inputs, promoted as the op requires.
        attrs: its attributes.
        run_on_host: ``run_on_host(op, inputs, attrs)`` runs the op on host tensors.

    Raises:
        InvalidArgumentError: soft placement is off, and the op has no device code.
    """
    if BLOCK_DEVICE.get() == CPU:
        return run_on_host(op, tuple(map(to_host, inputs)), attrs)
    if op is identity.op:
        return to_device(inputs[0].__copy__())
    reason = "it has an effect on the host"
    if op.effect is None:
        program = DEVICE_PROGRAMS.value(op, inputs, attrs, None)
        if isinstance(program, str):
            reason = program
        else:
            try:
                outputs = tuple(map(on_device, program(inputs)))
                PLACEMENT_LOG.add(op.name, GPU)
                return outputs[0] if op.outputs == 1 else outputs
            except InvalidArgumentError:  # on the host the op raises its own error
                return _through_host(op, inputs, attrs, run_on_host)
    if not SOFT_PLACEMENT.enabled and op.effect not in HOST_EFFECTS:
        raise InvalidArgumentError(
            f"{op.name} has no code for the device {GPU}: {reason}. Run it in a block of "
            "df.device('/cpu:0'), or let such ops run on the CPU: df.config.set_soft_device_placement(True)."
        )
    return _through_host(op, inputs, attrs, run_on_host)


def _through_host(
    op: Op, inputs: tuple[EagerTensor, ...], attrs: dict[str, Any], run_on_host: Callable[..., Any]
) -> Any:
    """The result of an op that runs on the host, between transfers."""
    result = run_on_host(op, tuple(map(to_host, inputs)), attrs)
    return tuple(map(to_device, result)) if type(result) is tuple else to_device(result)


def run_function_placed(
    rule: Callable[..., Any], inputs: tuple[Any, ...], attrs: dict[str, Any], count: int | None = None
) -> EagerTensor | None:
    """Run a function of ops on the device as one program; returns None if no device program can run it."""
    if BLOCK_DEVICE.get() == CPU or not all(isinstance(x, EagerTensor) for x in inputs):
        return None
    program = DEVICE_PROGRAMS.value(rule, inputs, attrs, count)
    if isinstance(program, str):
        return None
    (output,) = program(inputs)
    PLACEMENT_LOG.add(computation_name(rule), GPU)
    return on_device(output)
