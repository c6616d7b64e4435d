"""Compare the times of eager code, graphs and NumPy on this machine.

    python -m benchmarks                        # everything: about a minute
    python -m benchmarks --only gelu,softmax    # some rows
    python -m benchmarks --json figures.json
    python -m benchmarks --peers                # TensorFlow, jax and torch, with the memory of each

Engines are interleaved in one process, and the fastest block of calls counts; first calls run in new
processes.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.tables import write_json

DISTORTING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE")
"""Environment variables that are removed: with them OpenBLAS uses routines for another processor, at down to
half the speed, and Python compiles every module again. They are read at startup, so that a new process is
started without them.
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
    parser.add_argument("--peers", action="store_true", help="compare with other libraries only")
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
    """Run the measurements that the options select, and print them."""
    from benchmarks import backends, first_call, peers, pipelines, report, steady
    from benchmarks.derivatives import derivative_workloads
    from benchmarks.matrices import matrix_workloads
    from benchmarks.workloads import workloads

    about = report.machine()
    print(report.describe(about), end="\n\n", flush=True)
    words = [word.strip() for word in options.only.split(",")]
    if options.peers:
        costs = peers.compare(words, options.quick, 1 if options.quick else min(options.rounds, 2))
        show(report.peer_table(costs))
        show(report.peer_memory_table(costs))
        write_json(options.json, {"machine": about, "peers": {r: costs_of(c) for r, c in costs.items()}})
        return
    rounds, block = (1, 1e-4) if options.quick else (options.rounds, 0.05)
    quick = options.quick
    every = (*workloads(quick), *matrix_workloads(quick), *derivative_workloads(quick))
    chosen = [w for w in every if any(word in w.name for word in words)]
    rows = [steady.measure(workload, rounds, block) for workload in chosen]
    for table in (report.steady_table(rows), report.memory_table(rows)):
        show(table)
    figures = {"machine": about, "steady": [dataclasses.asdict(row) for row in rows]}
    piped = pipelines.measure(words, options.quick, rounds, block)
    show(report.pipeline_table(piped))
    figures["pipelines"] = [dataclasses.asdict(row) for row in piped]
    if not options.no_first_call:
        figures["first call"] = cases = first_call.first_calls(1 if options.quick else 3, quick=options.quick)
        show(report.first_call_table(cases))
    if not options.no_numba and backends.installed():
        compared = backends.compare(words, options.quick, rounds, block)
        show(report.backend_table(compared))
        figures["backends"] = [dataclasses.asdict(row) for row in compared]
        if not options.no_first_call:
            figures["backends' first call"] = firsts = backends.first_calls(
                cases, 1 if options.quick else 3, options.quick
            )
            show(report.backend_first_call_table(firsts))
    write_json(options.json, figures)


def costs_of(costs: dict[str, Any]) -> dict[str, Any]:
    """The costs of each library as plain data."""
    return {library: dataclasses.asdict(cost) for library, cost in costs.items()}


if __name__ == "__main__":
    main()
