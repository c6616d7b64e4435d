"""Formats the machine and the figures as Markdown tables."""

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
from benchmarks.first_call import OTHER_SIZES, STATES, CompileStats
from benchmarks.peers import OWN, Cost
from benchmarks.pipelines import Piped
from benchmarks.steady import ENGINES, Measured
from dualflow.backends.llvm.runtime import threads
from dualflow.core import blas

MIB = 1 << 20
LARGE = 100_000


def machine() -> dict[str, str]:
    """The properties of the machine and the versions of the software."""
    library = blas.find()
    return {
        "processor": f"{_processor()}, {os.cpu_count()} logical",
        "system": platform.platform(),
        "threads": str(threads.max_threads()),
        "versions": f"Python {platform.python_version()}, NumPy {np.__version__}, "
        f"llvmlite {llvmlite.__version__}, dualflow {df.version.DUALFLOW}",
        "BLAS": library.name if library is not None else "none that compiled code can call",
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
    """A table of microseconds per call, with their ratios."""
    lines = []
    for row in rows:
        eager, graph, reference = (row.seconds[engine] for engine in ENGINES)
        times = [_microseconds(t) for t in (eager, graph, reference)]
        lines.append([row.name, *times, f"{eager / graph:.1f}", f"{reference / graph:.1f}"])
    return markdown(["us per call", "eager", "graph", "NumPy", "eager / graph", "NumPy / graph"], lines)


def memory_table(rows: Sequence[Measured]) -> str:
    """A table of the peak memory of calls in MiB, without their inputs; small ones are omitted."""
    large = [row for row in rows if max(row.peak.values()) >= LARGE]
    lines = [[row.name, *(f"{row.peak[engine] / MIB:.1f}" for engine in ENGINES)] for row in large]
    return markdown(["MiB at the peak of a call", "eager", "graph", "NumPy"], lines)


def peer_table(rows: dict[str, dict[str, Cost]]) -> str:
    """A table of milliseconds per call by library, with the ratio of dualflow's to the best peer's."""
    lines = []
    for name, costs in rows.items():
        others = [cost.seconds for library, cost in costs.items() if library not in OWN]
        ratio = [f"{costs['dualflow'].seconds / min(others):.2f}"] if others else []
        lines.append([name, *(f"{1e3 * cost.seconds:.3f}" for cost in costs.values()), *ratio])
    libraries = list(next(iter(rows.values()), {}))
    last = ["dualflow / best peer"] if set(libraries) - set(OWN) else []
    return markdown(["ms per call", *libraries, *last], lines)


def peer_memory_table(rows: dict[str, dict[str, Cost]]) -> str:
    """A table of the peak memory of the first calls in MiB, by library."""
    measured = {n: costs for n, costs in rows.items() if all(c.mebibytes is not None for c in costs.values())}
    lines = [[name, *(f"{c.mebibytes:.1f}" for c in costs.values())] for name, costs in measured.items()]
    return markdown(["MiB at the peak", *next(iter(measured.values()), {})], lines)


def pipeline_table(rows: Sequence[Piped]) -> str:
    """A table of microseconds per element or batch."""
    libraries = list(dict.fromkeys(library for row in rows for library in row.seconds))
    lines = [[row.name, *(_microseconds(row.seconds[library]) for library in libraries)] for row in rows]
    return markdown(["us per element or batch", *libraries], lines)


def first_call_table(cases: dict[str, dict[str, CompileStats]]) -> str:
    """A table of first calls in milliseconds: with an empty cache, with machine code, with whole programs."""
    states = tuple(STATES)
    lines = []
    for name, case in cases.items():
        lines.append([f"first call, {name}", *(_milliseconds(case[s]["first"]) for s in states)])
        sizes = f"first calls, {name}, {OTHER_SIZES} other sizes"
        lines.append([sizes, *(_milliseconds(case[s]["other sizes"]) for s in states)])
    imports = [_milliseconds(min(case[s]["import"] for case in cases.values())) for s in states]
    return markdown(["ms", *states], [["import dualflow, after NumPy", *imports], *lines])


def backend_table(rows: Sequence[Compared]) -> str:
    """A table of microseconds per call on each backend, with their ratio."""
    lines = [
        [r.name, _microseconds(r.default), _microseconds(r.numba), f"{r.numba / r.default:.2f}"] for r in rows
    ]
    return markdown(["us per call", "default", "Numba", "Numba / default"], lines)


def backend_first_call_table(calls: dict[str, dict[str, dict[str, CompileStats]]]) -> str:
    """A table of first calls in milliseconds on each backend, with an empty cache and with a full one."""
    lines = []
    for case in calls["default"]:
        figures = [calls[backend][case][s]["first"] for backend in calls for s in ("cold", "warm")]
        lines.append([f"first call, {case}", *map(_milliseconds, figures)])
    heads = [f"{backend}, {state}" for backend in calls for state in ("cold", "warm")]
    return markdown(["ms", *heads], lines)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns, the first left-aligned; "" without rows."""
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
