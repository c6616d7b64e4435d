"""Total time to train an LSTM on batches of different lengths: dualflow, jax and torch.

    python -m benchmarks.lengths                          # 200 batches of 200 lengths
    python -m benchmarks.lengths --batches 50 --engines dualflow,jax --json figures.json

Each engine trains in a process of its own, with an empty object cache, and ends at the time limit. The time
begins with the first batch, so it contains tracing and compiling, but not imports. jax compiles a scan for
each length; torch runs its LSTM layer, and torch.compile compiles the training step around it. Engines that
are not installed are omitted. All train with the same numbers: their losses are compared.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from benchmarks.processes import FailedMeasurement, figures_of
from benchmarks.tables import command_line, write_json

SHORTEST: Final = 10
BATCH: Final = 16
FEATURES: Final = 32
UNITS: Final = 64
RATE: Final = 0.1
ENGINES: Final = {"dualflow": "dualflow", "jax": "jax", "torch": "torch", "torch.compile": "torch"}
"""The engines, and the packages that they need."""

Train = Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], float]


def weights() -> list[np.ndarray[Any, Any]]:
    """The weights of the inputs, of the state, and of the output."""
    rng = np.random.default_rng(0)
    shapes = ((FEATURES, 4 * UNITS), (UNITS, 4 * UNITS), (UNITS, 1))
    return [(rng.standard_normal(shape) * 0.1).astype(np.float32) for shape in shapes]


def batches(count: int) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Sequences of shape [length, batch, features] of ``count`` different lengths, and their targets."""
    rng = np.random.default_rng(1)
    lengths = rng.permutation(count) + SHORTEST
    sequences = [rng.standard_normal((n, BATCH, FEATURES)).astype(np.float32) for n in lengths]
    return [(x, x[:, :, :1].mean(0)) for x in sequences]


def dualflow_step() -> Train:
    """A training step with a dynamic length."""
    import dualflow as df

    inputs, states, output = variables = [df.Variable(w) for w in weights()]

    @df.function(input_signature=[df.TensorSpec([None, BATCH, FEATURES]), df.TensorSpec([BATCH, 1])])
    def step(x: Any, target: Any) -> Any:
        with df.GradientTape() as tape:
            state = cell = df.zeros([BATCH, UNITS])
            for row in x:
                gates = df.split(row @ inputs + state @ states, 4, 1)
                update, forget, reset = (df.sigmoid(gates[i]) for i in (0, 1, 3))
                cell = forget * cell + update * df.tanh(gates[2])
                state = reset * df.tanh(cell)
            loss = df.reduce_mean((state @ output - target) ** 2)
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(RATE * gradient)
        return loss

    return lambda x, target: float(step(df.constant(x), df.constant(target)))


def jax_step() -> Train:
    """A jitted training step, which scans the sequence."""
    import jax
    import jax.numpy as jnp

    def loss_of(variables: Any, x: Any, target: Any) -> Any:
        inputs, states, output = variables

        def advance(carry: Any, row: Any) -> Any:
            state, cell = carry
            gates = jnp.split(row @ inputs + state @ states, 4, 1)
            update, forget, reset = (jax.nn.sigmoid(gates[i]) for i in (0, 1, 3))
            cell = forget * cell + update * jnp.tanh(gates[2])
            return (reset * jnp.tanh(cell), cell), None

        zeros = jnp.zeros((BATCH, UNITS))
        (state, _), _ = jax.lax.scan(advance, (zeros, zeros), x)
        return jnp.mean((state @ output - target) ** 2)

    def step(variables: Any, x: Any, target: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(variables, x, target)
        return loss, [v - RATE * g for v, g in zip(variables, gradients, strict=True)]

    compiled, variables = jax.jit(step), [jnp.array(w) for w in weights()]

    def train(x: Any, target: Any) -> float:
        nonlocal variables
        loss, variables = compiled(variables, x, target)
        return float(loss)

    return train


def torch_step(*, compiled: bool) -> Train:
    """A training step with torch's LSTM layer, through torch.compile or not."""
    import torch

    inputs, states, output = weights()
    layer = torch.nn.LSTM(FEATURES, UNITS, bias=False)
    head = torch.nn.Linear(UNITS, 1, bias=False)
    with torch.no_grad():
        for parameter, value in ((layer.weight_ih_l0, inputs), (layer.weight_hh_l0, states)):
            parameter.copy_(torch.tensor(value.T))
        head.weight.copy_(torch.tensor(output.T))
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=RATE)

    def step(x: Any, target: Any) -> Any:
        optimizer.zero_grad()
        _, (state, _) = layer(x)
        loss = torch.mean((head(state[0]) - target) ** 2)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run: Any = torch.compile(step) if compiled else step
    return lambda x, target: float(run(torch.from_numpy(x), torch.from_numpy(target)))


def step_of(engine: str) -> Train:
    """The training step of an engine."""
    if engine.startswith("torch"):
        return torch_step(compiled=engine == "torch.compile")
    return jax_step() if engine == "jax" else dualflow_step()


@dataclasses.dataclass(frozen=True)
class Row:
    """Seconds of all batches, of the first, and of the median one; and the last loss."""

    total: float
    first: float
    median: float
    loss: float


def measure(engine: str, count: int) -> Row:
    """Train in this process."""
    data, step = batches(count), step_of(engine)
    times, loss = [], math.nan
    for x, target in data:
        start = time.perf_counter()
        loss = step(x, target)
        times.append(time.perf_counter() - start)
    return Row(sum(times), times[0], statistics.median(times), loss)


def measured(engine: str, count: int, limit: float) -> Row | None:
    """The times in a process of its own; None if it fails or takes longer than the limit."""
    arguments = ["--one", engine, "--batches", str(count)]
    with tempfile.TemporaryDirectory() as cache:
        environment = {"DUALFLOW_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
        try:
            return Row(**figures_of("lengths", arguments, environment, limit))
        except FailedMeasurement:
            return None


HEADER: Final = (
    "| engine        | total s | first s | median ms | total / dualflow |\n"
    "| :------------ | ------: | ------: | --------: | ---------------: |"
)


def line(engine: str, row: Row | None, base: Row | None) -> str:
    """A row of the Markdown table; "-" is a figure that is unknown, or over the limit."""
    if row is None:
        return f"| {engine:<13} | {'-':>7} | {'-':>7} | {'-':>9} | {'-':>16} |"
    ratio = "-" if base is None else f"{row.total / base.total:.1f}"
    same = base is None or math.isclose(row.loss, base.loss, rel_tol=1e-2)
    figures = f"{row.total:>7.2f} | {row.first:>7.2f} | {row.median * 1e3:>9.2f} | {ratio:>16}"
    return f"| {engine:<13} | {figures} |" + ("" if same else " DIFFERS")


def installed(engines: Sequence[str]) -> list[str]:
    """Those of ``engines`` whose packages are installed."""
    return [engine for engine in engines if find_spec(ENGINES[engine])]


def main() -> None:
    parser = command_line("lengths", __doc__)
    parser.add_argument("--batches", type=int, default=200, help="batches, each of its own length")
    parser.add_argument("--engines", type=lambda s: s.split(","), default=list(ENGINES))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for an engine (default: 600)")
    parser.add_argument("--one", choices=list(ENGINES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(dataclasses.asdict(measure(options.one, options.batches))))
        return
    print(HEADER, flush=True)
    table: dict[str, Row | None] = {}
    for engine in installed(options.engines):
        table[engine] = measured(engine, options.batches, options.limit)
        print(line(engine, table[engine], table.get("dualflow")), flush=True)
    write_json(options.json, {name: row and dataclasses.asdict(row) for name, row in table.items()})


if __name__ == "__main__":
    main()
