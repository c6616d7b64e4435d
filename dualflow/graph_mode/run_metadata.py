"""The measured time of a session's run, as TensorFlow's message ``RunMetadata``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from dualflow.ops.records.wire_format import delimited, varint_field


@dataclass(slots=True)
class RunOptions:
    """Options of a run. ``trace_level`` decides whether it is measured; the others are ignored.

    Args:
        trace_level: ``NO_TRACE``, or ``FULL_TRACE`` or another level, which measure the run.
        timeout_in_ms, inter_op_thread_pool, output_partition_graphs: TensorFlow's, and ignored.
        report_tensor_allocations_upon_oom: TensorFlow's, and ignored.

    >>> RunOptions(trace_level=RunOptions.FULL_TRACE).trace_level
    3
    """

    trace_level: int = 0
    timeout_in_ms: int = 0
    inter_op_thread_pool: int = 0
    output_partition_graphs: bool = False
    report_tensor_allocations_upon_oom: bool = False

    NO_TRACE: ClassVar[int] = 0
    SOFTWARE_TRACE: ClassVar[int] = 1
    HARDWARE_TRACE: ClassVar[int] = 2
    FULL_TRACE: ClassVar[int] = 3


@dataclass(slots=True)
class RunMetadata:
    """The time of a run, which :meth:`Session.run` measures if its options have a trace level.

    A run is one call of a compiled graph: its time is that of its first fetched operation. For times of
    kernels and of ops that run in Python, use :func:`dualflow.profiler.trace`.

    Attributes:
        operation: the name of the operation; empty before a run.
        start: the start of the run, in ns since the epoch.
        duration: in ns.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     metadata = v1.RunMetadata()
    ...     options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    ...     _ = session.run(v1.constant(1.0, name="one"), options=options, run_metadata=metadata)
    >>> metadata.operation, metadata.duration > 0
    ('one', True)
    """

    operation: str = field(init=False, default="")
    start: int = field(init=False, default=0)
    duration: int = field(init=False, default=0)

    @contextmanager
    def measuring(self, operation: str) -> Iterator[None]:
        """A context whose time is recorded for ``operation`` if it ends without an error."""
        start, before = time.time_ns(), time.perf_counter_ns()
        yield
        self.operation, self.start, self.duration = operation, start, time.perf_counter_ns() - before

    def SerializeToString(self) -> bytes:
        """The message: ``step_stats`` with one device and one node; empty before a run."""
        if not self.operation:
            return b""
        micros = max(1, self.duration // 1000)
        node = delimited(1, self.operation.encode()) + varint_field(2, self.start // 1000)
        node += varint_field(4, micros) + varint_field(5, micros)
        device = delimited(1, b"/device:CPU:0") + delimited(2, node)
        return delimited(1, delimited(1, device))
