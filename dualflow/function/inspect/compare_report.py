"""The result of :func:`dualflow.compare`, as data and as a table."""

from __future__ import annotations

import dataclasses
import math
import os
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from dualflow.core.atomic_files import write_atomically
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.report_text import escaped
from dualflow.core.tracebacks import entry
from dualflow.graph.compiled import CodeSource, PartKind, PartReport

if TYPE_CHECKING:
    from dualflow.function.inspect.agreement import Difference
    from dualflow.function.inspect.pass_graphs import PassGraph
    from dualflow.function.inspect.timeline import Timelines
    from dualflow.graph.analysis import Workload

_WIDTH = 88
_LABEL, _COLUMN = 18, 13
_MAX_FUSED = 16
_MAX_NAMES = 5
_PAGE_FIELDS = (
    "eager_seconds",
    "graph_seconds",
    "eager_peak_bytes",
    "graph_peak_bytes",
    "kernels",
    "blas_calls",
    "host_calls",
    "nodes",
    "costs",
    "speedup",
    "break_even",
    "break_even_warm",
    "agrees",
    "workload",
)
"""The fields of a comparison that the page shows."""
_PAGE_ONLY = ("timelines", "pass_graphs", "listing")
"""Fields for the page only, which plain data leaves out."""
_NBSP = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Fused:
    """The ops that one kernel computes: its name, their names, and the user's lines that call them."""

    kernel: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a graph before its first result, in seconds.

    Attributes:
        trace: running the Python function once with symbolic tensors.
        passes: the passes of the graph.
        emission: the memory plan, and writing the code as LLVM IR.
        compilation: compilation by LLVM, if the object cache is empty; without the import of LLVM, once per
            process.
        linking: loading the object code.
        paid: the time that this process has spent on compilation and linking.
        source: the source of the code: this process compiled it, an earlier one did (``disk``), another
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
        """The total compile time when the object code is in the cache on disk."""
        return self.trace + self.passes + self.emission + self.linking

    @property
    def cold(self) -> float:
        """The total compile time if the cache on disk is empty."""
        return self.warm + self.compilation


@dataclass(frozen=True, slots=True)
class Comparison:
    """The measurements of a function, eager and compiled. Print it for a table.

    Attributes:
        name: the name of the function.
        arguments: the specs of the arguments.
        eager_seconds, graph_seconds: the time of one call: the best of several rounds of calls after warm-up.
        eager_peak_bytes, graph_peak_bytes: the peak memory of one call beyond arguments and variables,
            including results: allocations of Python and NumPy, and the graph's arena, which stays allocated
            between calls.
        eager_ops: the number of runs of each op in an eager call.
        nodes: the number of nodes of the graph as traced.
        kernels, blas_calls, host_calls: the numbers of each in one call of the compiled graph.
        fused: the kernels that compute several ops.
        parts: how each part of the graph runs.
        recomputation_ratio: the work of the kernels, divided by that of their ops if each is computed once.
        tasks: the number of tasks that may run at the same time; 0 if all calls run in order.
        workload: the work of a call, and its longest chain of dependent steps; the steps are those of the
            optimised graph.
        costs: the costs before the first result.
        difference: between the results, and between the variables after the call.
        updated: the names of the variables that a call assigns.
        timelines: the steps of a call, and their memory; not in :meth:`as_dict`.
        pass_graphs: the graphs between the passes; not in :meth:`as_dict`.
        listing: the compiled program as Python source; not in :meth:`as_dict`.
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
    recomputation_ratio: float
    tasks: int
    workload: Workload
    costs: Costs
    difference: Difference
    updated: tuple[str, ...]
    timelines: Timelines
    pass_graphs: tuple[PassGraph, ...]
    listing: str

    @property
    def speedup(self) -> float:
        """Eager time divided by graph time."""
        return self.eager_seconds / self.graph_seconds

    @property
    def break_even(self) -> int | None:
        """The number of calls after which the graph's total time, with compiling, is less; None if never."""
        return self._break_even(self.costs.cold)

    @property
    def break_even_warm(self) -> int | None:
        """As :attr:`break_even`, if the object code is on disk from an earlier process."""
        return self._break_even(self.costs.warm)

    def _break_even(self, cost: float) -> int | None:
        saved = self.eager_seconds - self.graph_seconds
        return math.ceil(cost / saved) if saved > 0 else None

    def as_dict(self) -> dict[str, Any]:
        """The measurements as a dict that JSON can represent; numbers that are not finite are None."""
        fields: dict[str, Any] = _plain(self)
        fields |= {"speedup": self.speedup, "break_even": self.break_even}
        fields |= {"break_even_warm": self.break_even_warm, "agrees": self.difference.agrees}
        fields["workload"]["parallelism"] = self.workload.parallelism
        return fields

    def table(self) -> str:
        """The measurements as a table of at most 88 columns."""
        return "\n".join(line.rstrip() for line in _lines(self))

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def page(self, *others: Comparison) -> str:
        """The measurements as a self-contained HTML page.

        It has the timelines of both calls, time and memory, the cost before the first result, the number of
        calls after which compiling has paid, the graph after each pass with the source lines, the kernels,
        and their speed compared with the limits of this machine.

        Args:
            others: measurements of other functions or sizes, shown on the same page.

        Returns:
            The text of the page.
        """
        module = import_module("dualflow.function.inspect.compare_page")
        text: str = module.page([module.PageContent(*c._page_content()) for c in (self, *others)])
        return text

    def _page_content(self) -> tuple[Any, ...]:
        """The fields of :class:`dualflow.function.inspect.compare_page.PageContent`."""
        figures = self.as_dict()
        shown = {name: figures[name] for name in _PAGE_FIELDS} | {"reason": self.difference.reason}
        described = self.name, self.arguments, self.table()
        return (*described, shown, self.timelines, self.pass_graphs, self.listing)

    @entry
    def save(self, path: str | os.PathLike[str], *others: Comparison) -> None:
        """Write the measurements as one HTML page; see :meth:`page`. The file is written atomically.

        Args:
            path: the file; its extension is .html.
            others: measurements of other functions or sizes, shown on the same page.

        Raises:
            InvalidArgumentError: the file extension is unknown.
            OSError: the file can't be written.

        >>> import os, tempfile
        >>> import dualflow as df
        >>> report = df.compare(lambda x: df.exp(x) * 2.0, df.ones([8]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report.save(os.path.join(folder, "report.html"))
        ...     os.listdir(folder)
        ['report.html']
        """
        target = os.fspath(path)
        if not target.lower().endswith((".html", ".htm")):
            raise InvalidArgumentError(f"A comparison is saved as a page: {target!r} doesn't end with .html.")
        write_atomically(target, self.page(*others).encode())

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style does not change that of the notebook."""
        page = escaped(self.page()).replace('"', "&quot;")
        style = "width: 100%; height: 60rem; border: 0"
        title = escaped(f"comparison of {self.name}").replace('"', "&quot;")
        return f'<iframe title="{title}" style="{style}" srcdoc="{page}"></iframe>'


def _plain(value: Any) -> Any:
    """Plain data: dataclasses as dicts without the fields for the page only, infinite numbers as None."""
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value) if field.name not in _PAGE_ONLY)
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# The table


def _lines(c: Comparison) -> Iterator[str]:
    yield from wrap(f"{c.name}({c.arguments})", _WIDTH, subsequent_indent="    ")
    yield ""
    yield _row("", "eager", "graph")
    yield "-" * _WIDTH
    yield _row("time per call", duration(c.eager_seconds), duration(c.graph_seconds), _speedup_text(c))
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


def _speedup_text(c: Comparison) -> str:
    return _ratio_text(c.speedup, "faster", "slower")


def _memory_text(c: Comparison) -> str:
    if not c.graph_peak_bytes or not c.eager_peak_bytes:
        return ""
    return _ratio_text(c.eager_peak_bytes / c.graph_peak_bytes, "less", "more")


def _ratio_text(ratio: float, above: str, below: str) -> str:
    times = max(ratio, 1 / ratio)
    shown = f"{times:,.0f}" if times >= 100 else f"{times:.3g}"
    if times < 1.02:
        return "about the same"
    return f"{shown} times {above if ratio > 1 else below}"


def _other_calls(c: Comparison) -> str:
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


def _pays_warm(c: Comparison) -> str:
    if c.break_even_warm is None:
        return "the graph is not faster"
    return f"{c.break_even_warm:,} when the code is on disk"


def _verdict(c: Comparison) -> str:
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
    for number, group in enumerate(fused[:_MAX_FUSED]):
        label = "fused" if number == 0 else ""
        start, indent = f"{label:<{_LABEL}}{group.kernel:<5}", " " * (_LABEL + 5)
        text = _counted(group.ops) + (f"  ({_joined(group.lines)})" if group.lines else "")
        for line in wrap(text, _WIDTH, initial_indent=start, subsequent_indent=indent):
            yield line.replace(_NBSP, " ")
    if len(fused) > _MAX_FUSED:
        yield f"{'':<{_LABEL}}and {len(fused) - _MAX_FUSED} more, which as_dict() lists"


def _counted(names: tuple[str, ...]) -> str:
    counts = Counter(names)
    return ", ".join(name if n == 1 else f"{n}{_NBSP}{name}" for name, n in counts.items())


def _joined(lines: tuple[str, ...]) -> str:
    """Lines such as ``train.py:3, train.py:4, model.py:9``, grouped by file.

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
    """A time with its unit.

    >>> duration(3.2e-7), duration(0.0421), duration(3.5)
    ('0.32 us', '42.1 ms', '3.5 s')
    """
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-6:.3g} us"


def amount(number: float) -> str:
    """A number in thousands, millions or billions.

    >>> amount(640), amount(52_100), amount(2.5e6), amount(3.25e9)
    ('640', '52.1 thousand', '2.5 million', '3.25 billion')
    """
    for unit, name in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return f"{number:,.0f}"


def size(nbytes: int) -> str:
    """A number of bytes with its unit.

    >>> size(640), size(50_000), size(3 << 20)
    ('640 B', '48.8 KiB', '3 MiB')
    """
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {name}"
    return f"{nbytes} B"
