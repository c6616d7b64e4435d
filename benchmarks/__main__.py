"""Time eager, graph and NumPy beside each other on this machine.

    python -m benchmarks                        # everything: about a minute
    python -m benchmarks --only gelu,softmax    # some rows
    python -m benchmarks --json figures.json
    python -m benchmarks --peers                # beside TensorFlow, jax and torch, with the memory of each

Engines take turns in one process, and the fastest block of calls counts; first calls run in new processes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

DISTORTING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE")
"""What must not be set: with it OpenBLAS takes other routines than this processor's, at down to half the
speed, and Python compiles every module anew. Both are read at the start, so only a new process is free of it.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="rows whose name contains one of these words, by commas")
    parser.add_argument("--rounds", type=int, default=7, help="blocks of calls per engine (default: 7)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and one round: does it run at all?")
    parser.add_argument("--no-first-call", action="store_true", help="leave out what compiling costs")
    parser.add_argument("--no-numba", action="store_true", help="leave out the Numba backend")
    parser.add_argument("--peers", action="store_true", help="beside other libraries, and nothing else")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    if [os.environ.pop(name) for name in DISTORTING if name in os.environ]:
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])
    run(options)


def show(table: str) -> None:
    """Print a table, if it has rows."""
    if table:
        print(f"{table}\n", flush=True)


def run(options: argparse.Namespace) -> None:
    """Measure what the options ask for, and print it."""
    from benchmarks import backends, first_call, peers, pipelines, report, steady
    from benchmarks.derivatives import derivative_workloads
    from benchmarks.matrices import matrix_workloads
    from benchmarks.workloads import workloads

    about = report.machine()
    print(report.describe(about), end="\n\n", flush=True)
    words = [word.strip() for word in options.only.split(",")]
    if options.peers:
        beside = peers.compare(words, options.quick, 1 if options.quick else min(options.rounds, 2))
        show(report.peer_table(beside))
        show(report.peer_memory_table(beside))
        save(options.json, {"machine": about, "peers": {r: costs_of(c) for r, c in beside.items()}})
        return
    rounds, block = (1, 1e-4) if options.quick else (options.rounds, 0.05)
    quick = options.quick
    every = (*workloads(quick), *matrix_workloads(quick), *derivative_workloads(quick))
    chosen = [w for w in every if any(word in w.name for word in words)]
    rows = [steady.measure(workload, rounds, block) for workload in chosen]
    for table in (report.steady_table(rows), report.memory_table(rows)):
        show(table)
    found = {"machine": about, "steady": [dataclasses.asdict(row) for row in rows]}
    piped = pipelines.measure(words, options.quick, rounds, block)
    show(report.pipeline_table(piped))
    found["pipelines"] = [dataclasses.asdict(row) for row in piped]
    if not options.no_first_call:
        found["first call"] = cases = first_call.first_calls(1 if options.quick else 3)
        show(report.first_call_table(cases))
    if not options.no_numba and backends.installed():
        compared = backends.compare(words, options.quick, rounds, block)
        show(report.backend_table(compared))
        found["backends"] = [dataclasses.asdict(row) for row in compared]
        if not options.no_first_call:
            found["backends' first call"] = firsts = backends.first_calls(1 if options.quick else 3)
            show(report.backend_first_call_table(firsts))
    save(options.json, found)


def costs_of(costs: dict[str, Any]) -> dict[str, Any]:
    """Plain data of what each library takes."""
    return {library: dataclasses.asdict(cost) for library, cost in costs.items()}


def save(path: Path | None, found: dict[str, Any]) -> None:
    """Write the figures, if a file is asked for."""
    if path is not None:
        path.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
