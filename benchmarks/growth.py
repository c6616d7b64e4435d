"""Growth of times with the number of steps: compiled programs of n equal steps, eager calls and jax.

    python -m benchmarks.growth                          # every row at 200 and 400 steps
    python -m benchmarks.growth --gradient --rows softmax,columns --sizes 100,200 --json figures.json

A row is a step on a [64, 8] value. Each program is compiled and called in a process of its own, which ends at
the time limit. The seconds of the first call and the microseconds of the fastest later call are those of the
larger size; an exponent is that of the growth from the smaller size (1 is linear, 2 quadratic). jax is
omitted if it is not installed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from benchmarks.processes import FailedMeasurement, figures_of
from benchmarks.tables import command_line, print_table

ENGINES: Final = ("graph", "eager", "jax")
Step = Callable[[Any, Any, int], Any]
STEPS: Final[dict[str, Step]] = {}


def step(function: Step) -> Step:
    """Register a step: a function of a namespace with NumPy's names, a [64, 8] value and the step number."""
    STEPS[function.__name__] = function
    return function


@step
def columns(m: Any, x: Any, i: int) -> Any:
    return m.tanh(x * 1.01 + 0.1) if i % 3 else m.sum(x * x, axis=0, keepdims=True) * 0.001 + x


@step
def rows(m: Any, x: Any, i: int) -> Any:
    return x - m.mean(x, axis=1, keepdims=True) + 0.1


@step
def normalise(m: Any, x: Any, i: int) -> Any:
    centred = x - m.mean(x, axis=0, keepdims=True)
    return centred / m.sqrt(m.mean(centred * centred, axis=0, keepdims=True) + 1e-3) + 0.1


@step
def sinkhorn(m: Any, x: Any, i: int) -> Any:
    return x - m.log(m.sum(m.exp(x), axis=i % 2, keepdims=True))


@step
def whole(m: Any, x: Any, i: int) -> Any:
    return x * 0.99 + m.sum(x) * 1e-4


@step
def softmax(m: Any, x: Any, i: int) -> Any:
    e = m.exp(x - m.max(x, axis=1, keepdims=True))
    return x + e / m.sum(e, axis=1, keepdims=True)


@step
def matmul(m: Any, x: Any, i: int) -> Any:
    return m.tanh(m.matmul(x, m.matmul(m.transpose(x), x)) * 0.001) + x


@step
def transposed(m: Any, x: Any, i: int) -> Any:
    return m.reshape(m.transpose(m.reshape(x, [8, 64])), [64, 8]) * 1.01


@step
def slices(m: Any, x: Any, i: int) -> Any:
    return m.concatenate([x[1:] * 0.5, x[:1] + 1.0], axis=0)


@step
def gathers(m: Any, x: Any, i: int) -> Any:
    return m.take(x, np.array([(7 * j + i) % 64 for j in range(64)]), axis=0) + 0.1


@step
def residual(m: Any, x: Any, i: int) -> Any:
    return x + m.tanh(x * 0.5) * m.sum(x, axis=1, keepdims=True) * 0.01


@step
def reused(m: Any, x: Any, i: int) -> Any:
    y = m.exp(-x * x)
    return y * x + y


class _Dualflow:
    """The functions of dualflow under the names of jax.numpy that the steps use."""

    def __init__(self) -> None:
        import dualflow as df

        self.tanh, self.exp, self.log, self.sqrt = df.tanh, df.exp, df.math.log, df.sqrt
        self.matmul, self.transpose, self.reshape = df.matmul, df.transpose, df.reshape
        self.sum, self.mean, self.max = df.reduce_sum, df.reduce_mean, df.reduce_max
        self.concatenate, self.take = df.concat, df.gather


def program(name: str, n: int, m: Any = None, *, gradient: bool = False) -> Callable[[Any], Any]:
    """A program of ``n`` steps, or its gradient; of dualflow's ops unless ``m`` is another namespace."""
    import dualflow as df

    step, names = STEPS[name], m or _Dualflow()

    def run(x: Any) -> Any:
        for i in range(n):
            x = step(names, x, i)
        return x

    if not gradient:
        return run
    if m is None:
        return df.autodiff.grad(lambda x: df.reduce_sum(run(x)))
    import jax

    differentiated: Callable[[Any], Any] = jax.grad(lambda x: run(x).sum())
    return differentiated


@dataclasses.dataclass(frozen=True)
class Timed:
    """Seconds of the first call and of the fastest later one, and the sum of the result."""

    first: float
    later: float
    value: float


def measure(engine: str, name: str, n: int, gradient: bool, calls: int) -> Timed:
    """The times of a program in this process."""
    x: Any = (np.random.default_rng(0).standard_normal((64, 8)) * 0.1).astype(np.float32)
    if engine == "jax":
        import jax
        import jax.numpy as jnp

        x, f = jnp.array(x), jax.jit(program(name, n, jnp, gradient=gradient))
    else:
        import dualflow as df

        x, f = df.constant(x), program(name, n, gradient=gradient)
        f = df.function(f) if engine == "graph" else f
    start = time.perf_counter()
    result = np.asarray(f(x))
    first, best = time.perf_counter() - start, math.inf
    for _ in range(calls):
        start = time.perf_counter()
        np.asarray(f(x))
        best = min(best, time.perf_counter() - start)
    return Timed(first, best, float(np.abs(result).sum()))


def measured(engine: str, name: str, n: int, gradient: bool, calls: int, limit: float) -> Timed | None:
    """The times of a program in a process of its own, with an empty object cache.

    None if it fails or takes longer than the limit.
    """
    arguments = ["--one", engine, "--rows", name, "--sizes", str(n), "--calls", str(calls)]
    arguments += ["--gradient"] * gradient
    with tempfile.TemporaryDirectory() as cache:
        try:
            return Timed(**figures_of("growth", arguments, {"DUALFLOW_CACHE_DIR": cache}, limit))
        except FailedMeasurement:
            return None


@dataclasses.dataclass(frozen=True)
class Row:
    """A program at the larger size: times, their growth, and ratios to other engines; None is unknown."""

    name: str
    first: float
    later: float
    first_exponent: float
    later_exponent: float
    by_eager: float | None
    by_jax: float | None
    first_by_jax: float | None
    agrees: bool


def row(name: str, options: argparse.Namespace) -> Row | None:
    """One row of the table; None if the compiled program fails or takes longer than the limit."""

    def timed(engine: str, n: int) -> Timed | None:
        """The least times of several processes, to reduce noise from other load."""
        arguments = engine, name, n, options.gradient, options.calls, options.limit
        runs = [measured(*arguments) for _ in range(1 if engine == "eager" else options.processes)]
        done = [run for run in runs if run is not None]
        if len(done) < len(runs):
            return None
        return Timed(min(r.first for r in done), min(r.later for r in done), done[0].value)

    small, large = options.sizes
    few, many = timed("graph", small), timed("graph", large)
    if few is None or many is None:
        return None
    eager = timed("eager", large) if "eager" in options.engines else None
    jax = timed("jax", large) if "jax" in options.engines and find_spec("jax") else None
    peers = [peer.value for peer in (eager, jax) if peer is not None]
    return Row(
        name,
        many.first,
        many.later,
        math.log(many.first / few.first, large / small),
        math.log(many.later / few.later, large / small),
        None if eager is None else many.later / eager.later,
        None if jax is None else many.later / jax.later,
        None if jax is None else many.first / jax.first,
        all(math.isclose(many.value, value, rel_tol=1e-2, abs_tol=1e-4) for value in peers),
    )


COLUMNS: Final = (
    "first s",
    "exponent",
    "later us",
    "exponent",
    "later / eager",
    "later / jax",
    "first / jax",
)
_RULES: Final = ["-" * (len(column) - 1) + ":" for column in COLUMNS]
HEADER: Final = f"| {'row':10} | {' | '.join(COLUMNS)} |\n| {':':-<10} | {' | '.join(_RULES)} |"


def line(name: str, row: Row | None) -> str:
    """A row of the Markdown table; "-" is a figure that is unknown, or over the limit."""
    cells = ["-"] * len(COLUMNS)
    if row is not None:
        ratios = (row.by_eager, row.by_jax, row.first_by_jax)
        cells = [
            f"{row.first:.2f}",
            f"{row.first_exponent:.2f}",
            f"{row.later * 1e6:,.0f}",
            f"{row.later_exponent:.2f}",
        ]
        cells += ["-" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
    aligned = [f"{cell:>{len(column)}}" for cell, column in zip(cells, COLUMNS, strict=True)]
    return f"| {name:10} | {' | '.join(aligned)} |" + ("" if row is None or row.agrees else " DIFFERS")


def main() -> None:
    parser = command_line("growth", __doc__)
    parser.add_argument("--rows", type=lambda s: s.split(","), default=list(STEPS), help="names, by commas")
    parser.add_argument("--sizes", type=lambda s: [int(n) for n in s.split(",")], default=[200, 400])
    parser.add_argument("--engines", type=lambda s: s.split(","), default=list(ENGINES))
    parser.add_argument("--gradient", action="store_true", help="of the sum of the result")
    parser.add_argument("--calls", type=int, default=200, help="later calls, of which the fastest counts")
    parser.add_argument(
        "--processes", type=int, default=1, help="for each program, of which the least counts"
    )
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a process (default: 60)")
    parser.add_argument("--one", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        (name,), (n,) = options.rows, options.sizes
        timed = measure(options.one, name, n, options.gradient, options.calls)
        print(json.dumps(dataclasses.asdict(timed)))
        return
    print_table(HEADER, ((name, row(name, options)) for name in options.rows), line, options.json)


if __name__ == "__main__":
    main()
