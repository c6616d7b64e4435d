"""First calls in dualflow, TensorFlow, jax and torch: at one size, then at ten others.

    python -m benchmarks.first_call_peers                        # every row: some minutes
    python -m benchmarks.first_call_peers --rows MLP --rounds 1 --json figures.json

Each engine runs each row in processes of its own, and the fastest counts. The time of a first call contains
tracing and compiling, but not imports. dualflow begins with an empty cache folder (cold), then with the one
that this leaves (warm). "plain" TensorFlow, and torch, compile nothing. Columns: milliseconds of the first
call, of the first calls at ten other sizes, and both divided by those of the best peer. Results must agree.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from benchmarks.first_call import OTHER_SIZES
from benchmarks.peers import LIBRARIES, call_ready, gelu, gradient
from benchmarks.processes import figures_by_run
from benchmarks.tables import command_line, contains_word, write_json

Array = np.ndarray[Any, Any]
ENGINES: Final = {
    "dualflow, cold": "dualflow",
    "dualflow, warm": "dualflow",
    "tensorflow, plain": "tensorflow",
    "tensorflow": "tensorflow",
    "jax": "jax",
    "torch": "torch",
}
"""The engines, and the library of each."""


@dataclasses.dataclass(frozen=True)
class FirstCalls:
    """Seconds of a first call and of those at other sizes, and the sum of the last result."""

    first: float
    other_sizes: float
    total: float


def mlp_step(m: Any, x: Any, *weights: Any) -> Any:
    """The weights after a step of gradient descent."""
    return [w - 0.01 * g for w, g in zip(weights, gradient(m, x, *weights), strict=True)]


def chain(m: Any, x: Any, *, steps: int) -> Any:
    """Five ops in each step."""
    for i in range(steps):
        x = m.tanh(x * 1.01 + 0.1) - x * (0.001 * i)
    return x


def row(name: str, quick: bool) -> tuple[Callable[..., Any], Callable[[int], tuple[Array, ...]]]:
    """The function of a row, and one that returns its arguments at the ``i``-th size."""
    if name == "MLP step":
        widths, rng = (8, 4, 2) if quick else (784, 512, 512, 10), np.random.default_rng(0)
        weights = [rng.standard_normal(pair).astype(np.float32) * 0.05 for pair in pairwise(widths)]
        images = rng.random((128, widths[0]), dtype=np.float32)
        return mlp_step, lambda i: (images[: 128 - i], *weights)
    if name == "gelu":
        return gelu, lambda i: (np.linspace(-2, 2, 1000 + i, dtype=np.float32),)
    steps = 10 if quick else 1000
    return lambda m, x: chain(m, x, steps=steps), lambda i: (np.ones(64 + i, np.float32),)


ROWS: Final = ("gelu", "MLP step", "5000-op chain")


def measure(engine: str, name: str, quick: bool) -> FirstCalls:
    """The figures of an engine, in this process."""
    m: SimpleNamespace = LIBRARIES[ENGINES[engine]]()
    function, arguments = row(name, quick)
    compiled = (lambda call: call) if engine.endswith("plain") else m.compiled
    call = compiled(lambda *tensors: function(m, *tensors))
    sizes = [[m.tensor(x) for x in arguments(i)] for i in range(2 if quick else OTHER_SIZES + 1)]
    start = time.perf_counter()
    call_ready(m, call, sizes[0])
    called = time.perf_counter()
    for tensors in sizes[1:]:
        results = call_ready(m, call, tensors)
    done = time.perf_counter()
    leaves = results if isinstance(results, list | tuple) else [results]
    total = float(sum(np.abs(m.array(leaf)).sum(dtype=np.float64) for leaf in leaves))
    return FirstCalls(called - start, done - called, total)


def in_processes(names: Sequence[str], quick: bool) -> dict[str, FirstCalls]:
    """One round: the figures of the installed engines by row and engine, each in a new process."""
    return {
        f"{name}, {engine}": FirstCalls(*figures)
        for name in names
        for engine, figures in figures_by_run("first_call_peers", ENGINES, name, quick=quick).items()
    }


def table(figures: dict[str, FirstCalls], names: Sequence[str]) -> str:
    """A Markdown table with a line for each row and engine."""
    lines = [
        "| row | first ms | other sizes ms | / best peer | / best peer |",
        "| :--- | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        of_row = {key: f for key, f in figures.items() if key.startswith(f"{name}, ")}
        peers = [f for key, f in of_row.items() if "dualflow" not in key]
        best = [min((getattr(f, field) for f in peers), default=None) for field in ("first", "other_sizes")]
        for key, f in of_row.items():
            times = (f.first, f.other_sizes)
            ratios = [
                f"{t / b:.3f}" if b and "dualflow" in key else "" for t, b in zip(times, best, strict=True)
            ]
            lines.append(f"| {' | '.join([key, *[f'{t * 1e3:.1f}' for t in times], *ratios])} |")
    return "\n".join(lines)


def main() -> None:
    parser = command_line("first_call_peers", __doc__)
    parser.add_argument("--rows", default="", help="rows whose name contains one of these words, by commas")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each figure (default: 3)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and one round: does it run at all?")
    parser.add_argument("--run", choices=list(ENGINES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(dataclasses.astuple(measure(options.run, options.rows, options.quick))))
        return
    names = [name for name in ROWS if contains_word(name, options.rows)]
    runs = [in_processes(names, options.quick) for _ in range(1 if options.quick else options.rounds)]
    for key, f in runs[0].items():
        expected = runs[0][f"{key.split(', ')[0]}, dualflow, cold"].total
        if not np.isclose(f.total, expected, rtol=1e-3):
            raise SystemExit(f"{key} has {f.total}, dualflow {expected}")
    figures = {
        key: FirstCalls(
            min(run[key].first for run in runs), min(run[key].other_sizes for run in runs), f.total
        )
        for key, f in runs[0].items()
    }
    print(table(figures, names))
    write_json(options.json, {key: dataclasses.asdict(f) for key, f in figures.items()})


if __name__ == "__main__":
    main()
