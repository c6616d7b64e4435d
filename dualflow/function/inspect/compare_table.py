"""The measurements of :func:`dualflow.compare` as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from dualflow.core.report_text import amount, duration, size
from dualflow.function.inspect.measurements import Costs, DeviceMeasurements, Fused, Measurements
from dualflow.graph.compiled import CodeSource, PartKind, PartReport

if TYPE_CHECKING:
    from dualflow.graph.analysis import Workload

_WIDTH = 88
_LABEL, _COLUMN = 18, 13
_MAX_FUSED = 16
_MAX_NAMES = 5
_NBSP = "\N{NO-BREAK SPACE}"


def table(measurements: Measurements) -> str:
    """The measurements as a table of at most 88 columns."""
    return "\n".join(line.rstrip() for line in _lines(measurements))


def _lines(c: Measurements) -> Iterator[str]:
    yield from wrap(f"{c.name}({c.arguments})", _WIDTH, subsequent_indent="    ")
    yield ""
    yield _row("", "eager", "graph")
    yield "-" * _WIDTH
    yield _row("time per call", duration(c.eager_seconds), duration(c.graph_seconds), _speedup_text(c))
    for device in c.devices:
        yield _row(f"  on {device.device}", "", duration(device.seconds), _device_text(c, device))
    yield _row("peak memory", size(c.eager_peak_bytes), size(c.graph_peak_bytes), _memory_text(c))
    runs = _plural(sum(c.eager_ops.values()), "op"), _plural(c.kernels, "kernel")
    yield _row("one call runs", *runs, _other_calls(c))
    yield ""
    yield "before the first result"
    yield from _cost_rows(c.costs)
    pays = "never" if c.break_even is None else _plural(c.break_even, "call")
    yield _row("graph pays after", "", pays, _pays_warm(c))
    yield ""
    yield from _wrapped("results", _verdict(c))
    yield from _wrapped("graph runs", _modes(c.parts))
    yield from _workload_lines(c.workload, c.recomputation_ratio)
    if c.tasks:
        yield from _wrapped(
            "concurrent", f"{_plural(c.tasks, 'task')} of one or more kernels and products each"
        )
    yield from _fused_lines(c.fused)


def _row(label: str, eager: str, graph: str, note: str = "") -> str:
    return f"{label:<{_LABEL}}{eager:>{_COLUMN}}{graph:>{_COLUMN}}   {note}"


def _wrapped(label: str, text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=f"{label:<{_LABEL}}", subsequent_indent=" " * _LABEL)


def _speedup_text(c: Measurements) -> str:
    return _ratio_text(c.speedup, "faster", "slower")


def _device_text(c: Measurements, device: DeviceMeasurements) -> str:
    """The time on a device compared with that of the graph on the CPU, and the bytes that a call moves."""
    ratio = _ratio_text(c.graph_seconds / device.seconds, "faster", "slower")
    agrees = "" if device.difference.agrees else "; results DIFFER"
    return f"{ratio} than on the CPU; {size(device.transferred)} moved{agrees}"


def _memory_text(c: Measurements) -> str:
    if not c.graph_peak_bytes or not c.eager_peak_bytes:
        return ""
    return _ratio_text(c.eager_peak_bytes / c.graph_peak_bytes, "less", "more")


def _ratio_text(ratio: float, above: str, below: str) -> str:
    times = max(ratio, 1 / ratio)
    shown = f"{times:,.0f}" if times >= 100 else f"{times:.3g}"
    if times < 1.02:
        return "about the same"
    return f"{shown} times {above if ratio > 1 else below}"


def _other_calls(c: Measurements) -> str:
    """The numbers of calls of BLAS and Python in a call of the graph."""
    counts = [_plural(n, what) for n, what in ((c.blas_calls, "BLAS call"), (c.host_calls, "host call")) if n]
    return f"and {', '.join(counts)}" if counts else ""


def _cost_rows(costs: Costs) -> Iterator[str]:
    yield _row("  trace", "", duration(costs.trace), "run the Python function symbolically")
    yield _row("  passes", "", duration(costs.passes), "rewrite and fuse the graph")
    yield _row("  plan and emit", "", duration(costs.emission), "place values in memory, write LLVM IR")
    yield _row("  compile", "", duration(costs.compilation), _paid(costs))
    yield _row("  link", "", duration(costs.linking), "load the machine code")


def _paid(costs: Costs) -> str:
    return {
        CodeSource.COMPILED: "LLVM, in this process",
        CodeSource.DISK: "LLVM, in an earlier process: 0 here",
        CodeSource.PROCESS: "LLVM, for another function: 0 here",
        CodeSource.NONE: "nothing to compile",
    }[costs.source]


def _pays_warm(c: Measurements) -> str:
    if c.break_even_warm is None:
        return "the graph is not faster"
    return f"{c.break_even_warm:,} when the code is on disk"


def _verdict(c: Measurements) -> str:
    distance_text = f"{c.difference.largest:.1e} apart at most, {c.difference.relative:.1e} relative"
    if not c.difference.agrees:
        return f"DIFFER: {c.difference.reason} ({distance_text})"
    updated = f"; {_plural(len(c.updated), 'updated variable')} too" if c.updated else ""
    return (f"agree: {distance_text}" if c.difference.largest else "equal") + updated


def _modes(parts: tuple[PartReport, ...]) -> str:
    """The text on how parts of the graph run: natively, by NumPy or in Python, with reasons."""
    modes = ["natively"] if any(p.kind is PartKind.NATIVE for p in parts) else []
    for kind, name in ((PartKind.NUMPY, "NumPy"), (PartKind.PYTHON, "Python")):
        reasons = dict.fromkeys(f"{p.what} ({p.reason})" for p in parts if p.kind is kind)
        modes += [f"by {name} for {', '.join(reasons)}"] if reasons else []
    return " and ".join(modes) or "nothing: the results are constants"


def _workload_lines(w: Workload, executed: float) -> Iterator[str]:
    least = "" if w.complete else "at least "
    work = f"{least}{amount(w.operations)} operations in {_plural(w.steps, 'step')}"
    yield from _wrapped("work", f"{work}, {least}{size(w.bytes_moved)} read and written")
    yield from _wrapped("executed", f"{executed:.2f} times the work of the kernels' ops, each computed once")
    if len(w.path) > 1:
        names = [_few(step.split("+"), "+") for step in w.path]
        longest = f"{amount(w.span)} operations wait for each other: {_few(names, ', ')}"
        is_parallel = w.parallelism >= 1.005
        at_once = (
            f"{w.parallelism:.3g} steps could run at a time, on average, on up to {_plural(w.cores, 'core')}"
            if is_parallel
            else "that is all"
        )
        yield from _wrapped("longest chain", f"{longest}; {at_once}")


def _few(names: list[str], between: str) -> str:
    """The names, abbreviated to the first ones and the last one."""
    shown = names if len(names) <= _MAX_NAMES else [*names[: _MAX_NAMES - 2], "...", names[-1]]
    return between.join(shown)


def _fused_lines(fused: tuple[Fused, ...]) -> Iterator[str]:
    """The kernels and their ops; equal kernels of the same lines are one row."""
    kernels = Counter(fused)
    for number, (group, count) in enumerate(list(kernels.items())[:_MAX_FUSED]):
        label = "fused" if number == 0 else ""
        start, indent = f"{label:<{_LABEL}}{group.kernel:<5}", " " * (_LABEL + 5)
        text = _counted(group.ops) + (f"  ({_joined(group.lines)})" if group.lines else "")
        repeated = f", {count:,} times" if count > 1 else ""
        for line in wrap(text + repeated, _WIDTH, initial_indent=start, subsequent_indent=indent):
            yield line.replace(_NBSP, " ")
    if len(kernels) > _MAX_FUSED:
        yield f"{'':<{_LABEL}}and {len(kernels) - _MAX_FUSED} more, which as_dict() lists"


def _counted(names: tuple[str, ...]) -> str:
    counts = Counter(names)
    return ", ".join(name if n == 1 else f"{n}{_NBSP}{name}" for name, n in counts.items())


def _joined(lines: tuple[str, ...]) -> str:
    """Labels of lines, grouped by file or by cell of a notebook.

    >>> _joined(("train.py:3", "train.py:4", "model.py:9"))
    'train.py:3,4 model.py:9'
    >>> _joined(("cell 3, line 4", "cell 3, line 5", "cell 12, line 1"))
    'cell 3, line 4,5 cell 12, line 1'
    """
    numbers: dict[str, list[str]] = {}
    for line in lines:
        prefix = line.rstrip("0123456789")
        numbers.setdefault(prefix, []).append(line.removeprefix(prefix))
    return " ".join(f"{prefix}{','.join(own)}" for prefix, own in numbers.items())


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
