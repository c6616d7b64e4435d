"""``set_log_device_placement``, and the class of the eager engine that prints the ops on the CPU.

Ops on a GPU are printed where they run, in :mod:`dualflow.eager.placed_ops`.
"""

from __future__ import annotations

from typing import Any

from dualflow.core.device_names import CPU
from dualflow.eager.engine import EagerEngine, UniformEagerEngine
from dualflow.eager.engine_class import ENGINE_CLASS
from dualflow.eager.placement import PLACEMENT_LOG
from dualflow.eager.tensor import EagerTensor
from dualflow.ops.record import Op


class LoggedEagerEngine(UniformEagerEngine):
    """Prints each op that runs on the CPU."""

    __slots__ = ()

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if all(type(x) is EagerTensor for x in inputs):
            PLACEMENT_LOG.add(op.name, CPU)
        return EagerEngine.run(self, op, inputs, attrs)


def set_log_device_placement(enabled: bool) -> None:
    """Set whether each eager op prints its name and device to stderr; False by default.

    A call of a compiled function on a GPU prints its kernels, its transfers with their bytes, and the ops
    that it runs on the CPU. One on the CPU prints nothing.

    >>> import dualflow as df
    >>> df.debugging.set_log_device_placement(True)
    >>> _ = df.constant([1.0]) + df.constant([2.0])     # Executing op add in device /job:localhost/...
    >>> df.debugging.set_log_device_placement(False)
    """
    PLACEMENT_LOG.enabled = bool(enabled)
    ENGINE_CLASS.set_untimed(LoggedEagerEngine if enabled else EagerEngine)


def get_log_device_placement() -> bool:
    """Whether each eager op prints its name and device.

    >>> import dualflow as df
    >>> df.debugging.get_log_device_placement()
    False
    """
    return PLACEMENT_LOG.enabled
