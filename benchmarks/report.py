"""The machine and the figures, as Markdown tables."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import llvmlite
import numpy as np

import dualflow as df
from benchmarks.backends import Compared
from benchmarks.first_call import OTHER_SIZES, CompileStats
from benchmarks.peers import Cost
from benchmarks.pipelines import Piped
from benchmarks.steady import ENGINES, Measured
from dualflow.backends.llvm.runtime import threads
from dualflow.core import blas

MIB = 1 << 20
LARGE = 100_000


def machine() -> dict[str, str]:
    """What the figures depend on."""
    found = blas.find()
    return {
        "processor": f"{_processor()}, {os.cpu_count()} logical",
        "system": platform.platform(),
        "threads": str(threads.max_threads()),
        "versions": f"Python {platform.python_version()}, NumPy {np.__version__}, "
        f"llvmlite {llvmlite.__version__}, dualflow {df.version.DUALFLOW}",
        "BLAS": found.name if found is not None else "none that compiled code can call",
    }


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    if about.exists():
        for line in about.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or sys.platform


def describe(about: dict[str, str]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in about.items())


def steady_table(rows: Sequence[Measured]) -> str:
    """Microseconds per call, and how they compare."""
    lines = []
    for row in rows:
        eager, graph, reference = (row.seconds[engine] for engine in ENGINES)
        times = [_microseconds(t) for t in (eager, graph, reference)]
        lines.append([row.name, *times, f"{eager / graph:.1f}", f"{reference / graph:.1f}"])
    return markdown(["us per call", "eager", "graph", "NumPy", "eager / graph", "NumPy / graph"], lines)


def memory_table(rows: Sequence[Measured]) -> str:
    """Megabytes at the peak of a call, beside its inputs; calls that hardly need any are left out."""
    large = [row for row in rows if max(row.peak.values()) >= LARGE]
    lines = [[row.name, *(f"{row.peak[engine] / MIB:.1f}" for engine in ENGINES)] for row in large]
    return markdown(["MiB at the peak of a call", "eager", "graph", "NumPy"], lines)


def peer_table(rows: dict[str, dict[str, Cost]]) -> str:
    """Milliseconds per call by library, and dualflow's time as a part of the best peer's."""
    lines = []
    for name, costs in rows.items():
        others = [cost.seconds for library, cost in costs.items() if library not in ("dualflow", "eager")]
        ratio = [f"{costs['dualflow'].seconds / min(others):.2f}"] if others else []
        lines.append([name, *(f"{1e3 * cost.seconds:.3f}" for cost in costs.values()), *ratio])
    libraries = list(next(iter(rows.values()), {}))
    last = ["dualflow / best peer"] if len(libraries) > len(("dualflow", "eager")) else []
    return markdown(["ms per call", *libraries, *last], lines)


def peer_memory_table(rows: dict[str, dict[str, Cost]]) -> str:
    """MiB at the peak of the first calls by library."""
    told = {n: costs for n, costs in rows.items() if all(c.mebibytes is not None for c in costs.values())}
    lines = [[name, *(f"{cost.mebibytes:.1f}" for cost in costs.values())] for name, costs in told.items()]
    return markdown(["MiB at the peak", *next(iter(told.values()), {})], lines)


def pipeline_table(rows: Sequence[Piped]) -> str:
    """Microseconds per element or batch."""
    makers = list(dict.fromkeys(maker for row in rows for maker in row.seconds))
    lines = [[row.name, *(_microseconds(row.seconds[maker]) for maker in makers)] for row in rows]
    return markdown(["us per element or batch", *makers], lines)


def first_call_table(cases: dict[str, dict[str, CompileStats]]) -> str:
    """Milliseconds of the first calls, in a process with an empty object cache and in the next one."""
    states = ("cold", "warm")
    lines = []
    for name, case in cases.items():
        lines.append([f"first call, {name}", *(_milliseconds(case[s]["first"]) for s in states)])
        sizes = f"first calls, {name}, {OTHER_SIZES} other sizes"
        lines.append([sizes, *(_milliseconds(case[s]["other sizes"]) for s in states)])
    imports = [_milliseconds(min(case[s]["import"] for case in cases.values())) for s in states]
    return markdown(["ms", *states], [["import dualflow, after NumPy", *imports], *lines])


def backend_table(rows: Sequence[Compared]) -> str:
    """Microseconds per call on each backend, and how they compare."""
    lines = [
        [r.name, _microseconds(r.default), _microseconds(r.numba), f"{r.numba / r.default:.2f}"] for r in rows
    ]
    return markdown(["us per call", "default", "Numba", "Numba / default"], lines)


def backend_first_call_table(found: dict[str, dict[str, dict[str, CompileStats]]]) -> str:
    """Milliseconds of first calls on each backend, in a process with an empty cache and in the next one."""
    lines = []
    for case in found["default"]:
        figures = [found[backend][case][s]["first"] for backend in found for s in ("cold", "warm")]
        lines.append([f"first call, {case}", *map(_milliseconds, figures)])
    heads = [f"{backend}, {state}" for backend in found for state in ("cold", "warm")]
    return markdown(["ms", *heads], lines)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns also line up as plain text, all but the first numbers; "" without rows."""
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            f"{c:<{w}}" if i == 0 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join([first, *others]) + " |"

    rule = [":" + "-" * (widths[0] - 1), *("-" * (w - 1) + ":" for w in widths[1:])]
    return "\n".join([line(head), line(rule), *map(line, rows)])


def _microseconds(seconds: float) -> str:
    value = seconds * 1e6
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _milliseconds(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"
