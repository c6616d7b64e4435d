"""Training steps of deep models: dualflow, jax and TensorFlow.

    python -m benchmarks.deep                             # every row: about 4 minutes
    python -m benchmarks.deep --rows resnet --json figures.json

A row is a model and its depth: layers of a transformer, steps of an unrolled recurrent cell, blocks of a
residual network. Each engine trains in a process of its own, on the same numbers: dualflow with an empty
cache folder (cold), then with the one that this leaves (warm); jax and TensorFlow if they are installed.
Columns: the first step, with tracing and compiling, without imports; the fastest later step; the peak memory
of the process; and each of dualflow's figures divided by that of the best peer. "DIFFERS": the losses do.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from benchmarks.deep_models import MODELS, JaxNames, Model, TensorFlowNames
from benchmarks.processes import figures_by_run
from benchmarks.tables import command_line, contains_word, write_json

ROWS: Final = {
    f"{name} {depth}": (name, depth)
    for name, depths in {"transformer": (4, 12), "unrolled": (50, 200), "resnet": (1, 3)}.items()
    for depth in depths
}
RUNS: Final = {
    "dualflow, cold": "dualflow",
    "dualflow, warm": "dualflow",
    "jax": "jax",
    "tensorflow": "tensorflow",
}
"""The processes of a row, and the engine of each, which is the package that it needs."""
RATE: Final = 0.01
LATER: Final = 12
"""Later steps, of which the fastest counts."""


def tensorflow_step(model: Model, tf: Any) -> Callable[[], Any]:
    """A training step by a module with TensorFlow's names."""
    names, weights = TensorFlowNames(tf), [tf.Variable(w) for w in model.weights]
    inputs = [tf.constant(x) for x in model.inputs]

    def step(*inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.loss(names, weights, *inputs)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(RATE * tf.convert_to_tensor(gradient))
        return loss

    compiled = tf.function(step)
    return lambda: compiled(*inputs)


def jax_step(model: Model) -> Callable[[], Any]:
    """A training step by jax, which updates the weights in place."""
    import jax

    names = JaxNames()

    def step(weights: Any, *inputs: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda w: model.loss(names, w, *inputs))(weights)
        return loss, [w - RATE * g for w, g in zip(weights, gradients, strict=True)]

    compiled = jax.jit(step, donate_argnums=0)
    weights, inputs = map(jax.numpy.asarray, model.weights), [jax.numpy.asarray(x) for x in model.inputs]
    state = list(weights)

    def train() -> Any:
        loss, state[:] = compiled(state, *inputs)
        jax.block_until_ready(state)
        return loss

    return train


def step_of(engine: str, model: Model) -> Callable[[], Any]:
    """The training step of an engine."""
    if engine == "jax":
        return jax_step(model)
    if engine == "tensorflow":
        import tensorflow as tf
    else:
        import dualflow as tf
    return tensorflow_step(model, tf)


@dataclasses.dataclass(frozen=True)
class DeepFigures:
    """Seconds of the first step and of the fastest later one, MiB at the peak, and the last loss."""

    first: float
    later: float
    mib: float
    loss: float


def measure(engine: str, row: str, *, quick: bool = False) -> DeepFigures:
    """Train in this process."""
    name, depth = ROWS[row]
    step = step_of(engine, MODELS[name](min(depth, 3) if quick else depth, quick))
    times, loss = [], math.nan
    for _ in range(1 + (2 if quick else LATER)):
        start = time.perf_counter()
        loss = float(step())
        times.append(time.perf_counter() - start)
    return DeepFigures(times[0], min(times[1:]), _peak_mib(), loss)


def _peak_mib() -> float:
    if sys.platform == "win32":
        return math.nan
    import resource

    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measured(row: str, *, quick: bool = False) -> dict[str, DeepFigures]:
    """The figures of each installed engine, each in a process of its own.

    Raises:
        FailedMeasurement: a process fails.
    """
    figures = figures_by_run("deep", RUNS, row, quick=quick)
    return {run: DeepFigures(**x) for run, x in figures.items()}


COLUMNS: Final = ("first s", "later ms", "MiB", "first / peer", "later / peer", "MiB / peer")
HEADER: Final = (
    f"| {'row':<14} | {'engine':<14} | {' | '.join(COLUMNS)} |\n"
    f"| {':':-<14} | {':':-<14} | {' | '.join(['-' * (len(column) - 1) + ':' for column in COLUMNS])} |"
)


def lines(row: str, figures: dict[str, DeepFigures]) -> list[str]:
    """The lines of the Markdown table for a row; "-" without a peer."""
    peers = [x for run, x in figures.items() if RUNS[run] != "dualflow"]
    result = []
    for run, x in figures.items():
        ratios = ["-"] * 3
        if peers and RUNS[run] == "dualflow":
            best = [min(getattr(peer, name) for peer in peers) for name in ("first", "later", "mib")]
            ratios = [
                f"{own / other:.2f}" for own, other in zip((x.first, x.later, x.mib), best, strict=True)
            ]
        agrees = all(math.isclose(x.loss, peer.loss, rel_tol=2e-2) for peer in peers)
        cells = [f"{x.first:.2f}", f"{x.later * 1e3:.2f}", f"{x.mib:.0f}", *ratios]
        aligned = [f"{cell:>{len(column)}}" for cell, column in zip(cells, COLUMNS, strict=True)]
        end = "" if agrees else " DIFFERS"
        result.append(f"| {row:<14} | {run:<14} | {' | '.join(aligned)} |{end}")
    return result


def main() -> None:
    parser = command_line("deep", __doc__)
    parser.add_argument("--rows", default="", help="words that names of rows contain, by commas")
    parser.add_argument("--quick", action="store_true", help="tiny models, to test the benchmark")
    parser.add_argument("--run", choices=list(RUNS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        figures = measure(RUNS[options.run], options.rows, quick=options.quick)
        print(json.dumps(dataclasses.asdict(figures)))
        return
    print(HEADER, flush=True)
    table: dict[str, dict[str, Any]] = {}
    for row in ROWS:
        if contains_word(row, options.rows):
            by_run = measured(row, quick=options.quick)
            table[row] = {run: dataclasses.asdict(x) for run, x in by_run.items()}
            print("\n".join(lines(row, by_run)), flush=True)
    write_json(options.json, table)


if __name__ == "__main__":
    main()
