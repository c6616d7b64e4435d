"""The gain of a device: kernels, bytes and times of workloads on it, compared with the CPU and with peers.

    python -m benchmarks.devices                         # every row: some minutes
    python -m benchmarks.devices --rows gelu,softmax --json figures.json
    DUALFLOW_OPENCL=all python -m benchmarks.devices     # on PoCL, which runs kernels on the CPU

The lines before the table have the device, and the microseconds of a launch through pyopencl: until it is
enqueued, and until it has run. Please send them in with the table. Its columns:

* kernels: the kernels, products and copies that a call runs on the CPU, and the launches on the device. A
  reduction of all elements, or over the first axes, is one kernel on the CPU and two launches.
* host: the ops of a call that run on the host.
* MB: what the kernels of a call read and write, each value once for each kernel; CPU and device.
* moved: the MB of transfers of a call whose arguments, variables and results are on the host.
* CPU, there, with transfers: milliseconds of the fastest call on the CPU; on the device, with all tensors
  there; on the device, with all tensors on the host.
* a column for each of torch, jax and TensorFlow that is installed, on its GPU if it has one.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

import dualflow as df
from benchmarks import peers
from benchmarks.tables import command_line, contains_word, print_table
from benchmarks.workloads import Workload, workloads
from dualflow.backends.opencl.devices import current_device
from dualflow.core.tree import LEAF
from dualflow.function import Function
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.inspect.agreement import Outcome, compared
from dualflow.graph.compiled import StepTime, TimedKind
from dualflow.graph.work import bytes_moved

DEVICE: Final = "/GPU:0"
PEERS: Final = ("torch", "jax", "tensorflow")
UNLIMITED: Final = 1 << 60
"""A memory budget that every call keeps; with a budget, calls run in order, so that each can be counted."""
_MEGA: Final = 1e6
_LAUNCHED: Final = (TimedKind.KERNEL, TimedKind.PRODUCT, TimedKind.COPY)


@dataclasses.dataclass(frozen=True)
class Traffic:
    """What a call does.

    Attributes:
        kernels: the kernels, products and copies that run, each loop iteration counted.
        host_calls: the ops that run on the host.
        nbytes: the bytes that kernels and products read and write.
        transferred: the bytes of transfers.
    """

    kernels: int
    host_calls: int
    nbytes: int
    transferred: int


@dataclasses.dataclass(frozen=True)
class Row:
    """The figures of a workload: traffic, seconds of the fastest calls, and those of peers by library."""

    cpu: Traffic
    device: Traffic
    cpu_seconds: float
    device_seconds: float
    transfer_seconds: float
    peers: dict[str, float | None]


@dataclasses.dataclass(frozen=True)
class LaunchTimes:
    """Seconds of a launch of an empty kernel: until it is enqueued, and until it has run."""

    enqueued: float
    completed: float


def rows(quick: bool) -> Iterator[Workload]:
    """Every workload: those of ``python -m benchmarks``, and those of its peers, without repetitions."""
    names = set()
    for workload in workloads(quick):
        names.add(workload.name)
        yield workload
    library = peers.of_dualflow()
    for row in peers.whole_rows(quick):
        if row.name not in names:
            body = partial(row.body, library)
            build = partial(_same, body)
            yield Workload(row.name, row.inputs, build, build)


def _same(body: Callable[..., Any]) -> Callable[..., Any]:
    return body


def measure(workload: Workload, seconds: float, quick: bool, libraries: Sequence[str]) -> Row:
    """The figures of a workload, from about ``seconds`` of calls; the results must agree.

    Raises:
        AssertionError: the results of the CPU and the device differ.
    """
    host = tuple(map(df.constant, workload.inputs))
    there = tuple([x.gpu() for x in host])
    on_cpu = df.function(workload.build(), backend="llvm")
    from_host = df.function(workload.build(), backend="opencl")
    with df.device(DEVICE):
        body = workload.build()  # whose variables are there
    on_device = df.function(body)
    _require_agreement(workload.name, on_cpu(*host), on_device(*there))
    cpu_seconds, device_seconds, transfer_seconds = peers.fastest(
        [lambda: on_cpu(*host), lambda: wait(on_device(*there)), lambda: wait(from_host(*host))], seconds
    )
    in_order = df.function(workload.build(), backend="llvm", memory_budget=UNLIMITED)
    in_order(*host)
    return Row(
        traffic(in_order, host),
        traffic(from_host, host),
        cpu_seconds,
        device_seconds,
        transfer_seconds,
        {name: seconds_of_peer(name, workload.name, quick) for name in libraries},
    )


def _require_agreement(name: str, expected: Any, actual: Any) -> None:
    """Compare results as ``df.compare`` does: relative to the largest element, since sums lose digits.

    A running sum that is near zero has the rounding errors of the large ones before it.
    """
    outcomes = (Outcome(LEAF, [x.numpy() for x in df.nest.flatten(y)], []) for y in (expected, actual))
    difference = compared(*outcomes)
    assert difference.agrees, f"{name}: {difference.reason}"


def seconds_of_peer(library: str, name: str, quick: bool) -> float | None:
    """Seconds of the fastest call of a row in another library; None if it has no such row."""
    if all(row.name != name for row in peers.whole_rows(quick=True)):
        return None
    return peers.in_process(library, name, quick, gpu=True).seconds


def wait(results: Any) -> None:
    """Wait until the device has computed results."""
    current_device().queue.finish()


def traffic(function: Function[..., Any], inputs: Sequence[Any]) -> Traffic:
    """What a call of a function with one trace does, when all its inputs are on the host."""
    (concrete,) = function.concrete_functions
    compiled = concrete.compiled
    timer = compiled.backend.step_timer(compiled.executable)
    arrays = [np.array(array_of(x), order="C") for x in (*inputs, *compiled.sources.captured)]
    steps = list(_flat(timer(arrays)))
    computed = {step.node: step for step in steps if step.kind in _LAUNCHED and step.node is not None}
    return Traffic(
        sum(step.runs for step in steps if step.kind in _LAUNCHED),
        sum(step.runs for step in steps if step.kind is TimedKind.HOST),
        sum(bytes_moved(node) * step.runs for node, step in computed.items()),
        sum(step.nbytes * step.runs for step in steps if step.kind is TimedKind.TRANSFER),
    )


def _flat(steps: Iterable[StepTime]) -> Iterator[StepTime]:
    for step in steps:
        yield step
        yield from _flat(step.steps)


def launch_times(count: int) -> LaunchTimes:
    """The times of ``count`` launches of an empty kernel, each the mean."""
    device = current_device()
    kernel = device.kernel("__kernel void df_kernel(const long items) {}")
    device.enqueue(kernel, 64, 64, [np.int64(0)])
    device.queue.finish()
    start = time.perf_counter()
    for _ in range(count):
        device.enqueue(kernel, 64, 64, [np.int64(0)])
    enqueued = time.perf_counter()
    device.queue.finish()
    return LaunchTimes((enqueued - start) / count, (time.perf_counter() - start) / count)


def describe() -> str:
    """The lines about the device."""
    device = current_device().device
    times = launch_times(1000)
    return (
        f"device: {device.name.strip()}, {device.max_compute_units} compute units\n"
        f"driver: {device.platform.name.strip()} {device.driver_version.strip()}\n"
        f"a launch: {times.enqueued * 1e6:.1f} us until it is enqueued, "
        f"{times.completed * 1e6:.1f} us until it has run\n"
    )


def header(libraries: Sequence[str]) -> str:
    """The head of the Markdown table."""
    names = ("kernels", "host", "MB", "moved", "CPU ms", "there", "with transfers", *libraries)
    widths = (13, 5, 13, 7, 8, 8, 14, *(9 for _ in libraries))
    cells = " | ".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    rule = " | ".join("-" * (width - 1) + ":" for width in widths)
    return f"| {'row':<40} | {cells} |\n| :{'-' * 39} | {rule} |"


def line(name: str, row: Row) -> str:
    """A row of the Markdown table."""
    cpu, device = row.cpu, row.device
    kernels = f"{cpu.kernels:,} / {device.kernels:,}"
    nbytes = f"{cpu.nbytes / _MEGA:.1f} / {device.nbytes / _MEGA:.1f}"
    times = f"{_ms(row.cpu_seconds, 8)} | {_ms(row.device_seconds, 8)} | {_ms(row.transfer_seconds, 14)}"
    others = "".join(f" {_ms(seconds, 9)} |" for seconds in row.peers.values())
    moved = f"{device.transferred / _MEGA:>7.1f}"
    return (
        f"| {name:<40} | {kernels:>13} | {device.host_calls:>5} | {nbytes:>13} | {moved} | {times} |{others}"
    )


def _ms(seconds: float | None, width: int) -> str:
    if seconds is None:
        return f"{'-':>{width}}"
    return f"{seconds * 1e3:>{width},.3f}"


def main() -> None:
    parser = command_line("devices", __doc__)
    parser.add_argument("--rows", default="", help="rows whose name contains one of these words, by commas")
    parser.add_argument("--seconds", type=float, default=3.0, help="for the calls of a row (default: 3)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all?")
    options = parser.parse_args()
    try:
        print(describe())
    except df.errors.NotFoundError as error:
        raise SystemExit(str(error)) from None
    libraries = [name for name in peers.installed() if name in PEERS]
    chosen = [w for w in rows(options.quick) if contains_word(w.name, options.rows)]
    measured = ((w.name, measure(w, options.seconds, options.quick, libraries)) for w in chosen)
    print_table(header(libraries), measured, line, options.json)


if __name__ == "__main__":
    main()
