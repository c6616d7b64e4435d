"""What :func:`dualflow.compare` found, as data and as a table."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from dualflow.core.records import dataclass
from dualflow.graph.compiled import CodeSource, PartKind, PartReport

if TYPE_CHECKING:
    from dualflow.graph.analysis import Workload

_WIDTH = 88
_LABEL, _COLUMN = 18, 13
_MOST_FUSED = 16
_MOST_NAMES = 5
_TIED = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Fused:
    """Ops that one kernel computes together: its name, theirs in order, and the user's lines behind them."""

    kernel: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds that come before the first result of a graph.

    Attributes:
        trace: running the Python function once with symbols.
        passes: the graph's passes.
        emission: the memory plan, and writing the code as LLVM IR.
        compilation: LLVM's work when the object cache is empty; importing LLVM, once a process, comes on top.
        linking: loading the object code.
        paid: what this process spent on compilation and linking.
        source: where its code came from: this process compiled it, an earlier one did (``disk``), another
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
        """All of it when the object code is on disk."""
        return self.trace + self.passes + self.emission + self.linking

    @property
    def cold(self) -> float:
        """All of it when the object cache is empty."""
        return self.warm + self.compilation


@dataclass(frozen=True, slots=True)
class Difference:
    """How far results and updated variables are apart.

    Attributes:
        largest: the largest absolute difference of two elements; nan beside a number is infinitely far.
        relative: the same divided by the largest magnitude in its array, the worst of all arrays.
        reason: why they don't agree; empty when they do. Floats agree when ``relative`` is at most the square
            root of the dtype's epsilon (3e-4 for float32), everything else when it is equal.
    """

    largest: float
    relative: float
    reason: str = ""

    @property
    def agrees(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class Comparison:
    """A function run eagerly beside the same function as a compiled graph. Print it for the table.

    Attributes:
        name: the function's.
        arguments: the trace that was compared.
        eager_seconds, graph_seconds: of one call: the best of several rounds of calls, all warmed up.
        eager_peak_bytes, graph_peak_bytes: the most memory of one call beyond arguments and variables,
            results
            included: what Python and NumPy allocate, and the graph's arena, which it keeps between calls.
        eager_ops: the ops that ran in an eager call, and how often.
        nodes: the nodes of the graph as it was traced.
        kernels, blas_calls, host_calls: what one call of the compiled graph runs.
        fused: the kernels that compute several ops.
        parts: how each part of the graph runs.
        executed: the work that the kernels execute, divided by that of their ops, each computed once.
        workload: how much the graph computes in a call, and how much of that waits for each other; its steps
            are those of the graph as it runs.
        costs: what the graph costs before its first result.
        difference: between the results, and between the variables after the call.
        updated: names of the variables that a call assigns.
    """

    name: str
    arguments: str
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
    executed: float
    workload: Workload
    costs: Costs
    difference: Difference
    updated: tuple[str, ...]

    @property
    def speedup(self) -> float:
        """Eager time by graph time."""
        return self.eager_seconds / self.graph_seconds

    @property
    def break_even(self) -> int | None:
        """Calls after which the graph has taken less time in all, first compile included; None if never."""
        return self._pays_after(self.costs.cold)

    @property
    def break_even_warm(self) -> int | None:
        """The same when the object code is on disk from an earlier process."""
        return self._pays_after(self.costs.warm)

    def _pays_after(self, cost: float) -> int | None:
        saved = self.eager_seconds - self.graph_seconds
        return math.ceil(cost / saved) if saved > 0 else None

    def as_dict(self) -> dict[str, Any]:
        """All figures as plain data, which JSON can hold; a number that is not finite is None."""
        found: dict[str, Any] = _finite(dataclasses.asdict(self))
        found |= {"speedup": self.speedup, "break_even": self.break_even}
        found |= {"break_even_warm": self.break_even_warm, "agrees": self.difference.agrees}
        found["workload"]["parallelism"] = self.workload.parallelism
        return found

    def table(self) -> str:
        """The figures as text of at most 88 columns."""
        return "\n".join(line.rstrip() for line in _lines(self))

    def __str__(self) -> str:
        return self.table()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# The table


def _lines(c: Comparison) -> Iterator[str]:
    yield from wrap(f"{c.name}({c.arguments})", _WIDTH, subsequent_indent="    ")
    yield ""
    yield _row("", "eager", "graph")
    yield "-" * _WIDTH
    yield _row("time per call", duration(c.eager_seconds), duration(c.graph_seconds), _faster(c))
    yield _row("peak memory", size(c.eager_peak_bytes), size(c.graph_peak_bytes), _less(c))
    runs = _plural(sum(c.eager_ops.values()), "op"), _plural(c.kernels, "kernel")
    yield _row("one call runs", *runs, _besides(c))
    yield ""
    yield "before the first result"
    yield from _cost_rows(c.costs)
    pays = "never" if c.break_even is None else _plural(c.break_even, "call")
    yield _row("graph pays after", "", pays, _pays_warm(c))
    yield ""
    yield from _wrapped("results", _verdict(c))
    yield from _wrapped("graph runs", _ways(c.parts))
    yield from _workload_lines(c.workload, c.executed)
    yield from _fused_lines(c.fused)


def _row(label: str, eager: str, graph: str, note: str = "") -> str:
    return f"{label:<{_LABEL}}{eager:>{_COLUMN}}{graph:>{_COLUMN}}   {note}"


def _wrapped(label: str, text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=f"{label:<{_LABEL}}", subsequent_indent=" " * _LABEL)


def _faster(c: Comparison) -> str:
    return _ratio(c.speedup, "faster", "slower")


def _less(c: Comparison) -> str:
    if not c.graph_peak_bytes or not c.eager_peak_bytes:
        return ""
    return _ratio(c.eager_peak_bytes / c.graph_peak_bytes, "less", "more")


def _ratio(ratio: float, above: str, below: str) -> str:
    times = max(ratio, 1 / ratio)
    shown = f"{times:,.0f}" if times >= 100 else f"{times:.3g}"
    if times < 1.02:
        return "about the same"
    return f"{shown} times {above if ratio > 1 else below}"


def _besides(c: Comparison) -> str:
    """What a call of the graph runs beside its kernels."""
    found = [_plural(n, what) for n, what in ((c.blas_calls, "BLAS call"), (c.host_calls, "host call")) if n]
    return f"and {', '.join(found)}" if found else ""


def _cost_rows(costs: Costs) -> Iterator[str]:
    yield _row("  trace", "", duration(costs.trace), "run the Python function with symbols")
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


def _pays_warm(c: Comparison) -> str:
    if c.break_even_warm is None:
        return "the graph is not faster"
    return f"{c.break_even_warm:,} when the code is on disk"


def _verdict(c: Comparison) -> str:
    far = f"{c.difference.largest:.1e} apart at most, {c.difference.relative:.1e} relative"
    if not c.difference.agrees:
        return f"DIFFER: {c.difference.reason} ({far})"
    updated = f"; {_plural(len(c.updated), 'updated variable')} too" if c.updated else ""
    return (f"agree: {far}" if c.difference.largest else "equal") + updated


def _ways(parts: tuple[PartReport, ...]) -> str:
    """How the graph runs: natively, but for what it says."""
    ways = ["natively"] if any(p.kind is PartKind.NATIVE for p in parts) else []
    for kind, name in ((PartKind.NUMPY, "NumPy"), (PartKind.PYTHON, "Python")):
        found = dict.fromkeys(f"{p.what} ({p.reason})" for p in parts if p.kind is kind)
        ways += [f"by {name} for {', '.join(found)}"] if found else []
    return " and ".join(ways) or "nothing: the results are constants"


def _workload_lines(w: Workload, executed: float) -> Iterator[str]:
    least = "" if w.complete else "at least "
    work = f"{least}{amount(w.operations)} operations in {_plural(w.steps, 'step')}"
    yield from _wrapped("work", f"{work}, {least}{size(w.bytes_moved)} read and written")
    yield from _wrapped("executed", f"{executed:.2f} times the work of the kernels' ops, each computed once")
    if len(w.path) > 1:
        names = [_few(step.split("+"), "+") for step in w.path]
        longest = f"{amount(w.span)} operations wait for each other: {_few(names, ', ')}"
        several = w.parallelism >= 1.005
        at_once = f"{w.parallelism:.3g} steps could run at a time, on average" if several else "that is all"
        yield from _wrapped("longest chain", f"{longest}; {at_once}")


def _few(names: list[str], between: str) -> str:
    """The first names and the last one."""
    shown = names if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES - 2], "...", names[-1]]
    return between.join(shown)


def _fused_lines(fused: tuple[Fused, ...]) -> Iterator[str]:
    for number, group in enumerate(fused[:_MOST_FUSED]):
        label = "fused" if number == 0 else ""
        start, indent = f"{label:<{_LABEL}}{group.kernel:<5}", " " * (_LABEL + 5)
        text = _counted(group.ops) + (f"  ({_joined(group.lines)})" if group.lines else "")
        for line in wrap(text, _WIDTH, initial_indent=start, subsequent_indent=indent):
            yield line.replace(_TIED, " ")
    if len(fused) > _MOST_FUSED:
        yield f"{'':<{_LABEL}}and {len(fused) - _MOST_FUSED} more, which as_dict() lists"


def _counted(names: tuple[str, ...]) -> str:
    counts = Counter(names)
    return ", ".join(name if n == 1 else f"{n}{_TIED}{name}" for name, n in counts.items())


def _joined(lines: tuple[str, ...]) -> str:
    """``train.py:3, train.py:4, model.py:9`` without repeating the file's name.

    >>> _joined(("train.py:3", "train.py:4", "model.py:9"))
    'train.py:3,4 model.py:9'
    """
    files: dict[str, list[str]] = {}
    for line in lines:
        file, _, number = line.rpartition(":")
        files.setdefault(file, []).append(number)
    return " ".join(f"{file}:{','.join(numbers)}" for file, numbers in files.items())


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Seconds with the unit that fits.

    >>> duration(3.2e-7), duration(0.0421), duration(3.5)
    ('0.32 us', '42.1 ms', '3.5 s')
    """
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-6:.3g} us"


def amount(number: float) -> str:
    """A number with the word that fits.

    >>> amount(640), amount(52_100), amount(2.5e6), amount(3.25e9)
    ('640', '52.1 thousand', '2.5 million', '3.25 billion')
    """
    for unit, name in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return f"{number:,.0f}"


def size(nbytes: int) -> str:
    """Bytes with the unit that fits.

    >>> size(640), size(50_000), size(3 << 20)
    ('640 B', '48.8 KiB', '3 MiB')
    """
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {name}"
    return f"{nbytes} B"
