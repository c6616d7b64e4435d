"""Collectives between two workers of this machine, training steps, and how far they scale.

    python -m benchmarks.several_machines                          # about a minute
    python -m benchmarks.several_machines --torch-python ~/torch/bin/python --json figures.json

All-reduce of three sizes: in a compiled function and eagerly, by mpi4py on NumPy arrays, and by torch's gloo,
whose workers are processes of the Python that has torch. Blocks of calls alternate, and each library's best
block counts. Two workers need two idle cores: they spin while they wait.

Training steps: the digits, and an MLP of 10 million parameters, on 1 and 2 workers with the same whole batch.
The share of the collective is that of its spans in a profile of the same steps.

Optimizer state: Adam's for the larger model, whole on each of 2 and 4 workers and divided among them.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.scaling import GBIT, Network, Training, lines
from benchmarks.tables import command_line, write_json

Step = Callable[[], object]
COLLECTIVES: Final = {
    "4 kB": (4_000, 20, 10),
    "400 kB": (400_000, 2, 10),
    "40 MB": (40_000_000, 1, 1),
}
"""The bytes of each all-reduce, the calls of a block, and the blocks of a round."""
MODELS: Final = {
    "digits, 64-32-10, batch 64": (64, [64, 32, 10], 20),
    "MLP, 10M, batch 128": (128, [784, 2800, 2800, 10], 1),
}
"""The batch of each model, the widths of its layers, and the steps of a block."""
QUICK_COLLECTIVES: Final = {"4 kB": (4_000, 1, 1)}
QUICK_MODELS: Final = {"digits, 64-32-10, batch 64": (64, [64, 32, 10], 1)}
NETWORKS: Final = {f"{gbit} Gbit/s": Network(20e-6, gbit * GBIT) for gbit in (25, 200)}
"""With 20 us for a message, as between two switches of a cluster."""


def blocks_of(steps: dict[str, Step], wait: Step, rounds: int, calls: int) -> dict[str, float]:
    """The seconds of a call in the best block of each step; blocks begin when all workers have come."""
    for step in steps.values():
        step()
    best = dict.fromkeys(steps, math.inf)
    for _ in range(rounds):
        for name, step in steps.items():
            wait()
            start = time.perf_counter()
            for _ in range(calls):
                step()
            best[name] = min(best[name], (time.perf_counter() - start) / calls)
    return best


def all_reduced(values: Any) -> Any:
    """The sums of ``values`` over all workers, in a function that a strategy runs."""
    import dualflow as df

    context = df.distribute.get_replica_context()
    assert context is not None, "a strategy runs the function"
    return context.all_reduce("SUM", values)


def collectives(quick: bool, rounds: int) -> dict[str, dict[str, float]]:
    """The seconds of each all-reduce in this worker, by dualflow and by mpi4py."""
    import dualflow as df

    strategy = df.distribute.MultiWorkerMirroredStrategy()
    from mpi4py import MPI

    communicator = MPI.COMM_WORLD.Dup()

    def reduced(x: Any) -> Any:
        return strategy.run(lambda: all_reduced(x))

    figures = {}
    for name, (nbytes, calls, blocks) in (QUICK_COLLECTIVES if quick else COLLECTIVES).items():
        source = np.arange(nbytes // 4, dtype=np.float32)
        x, target, compiled = df.constant(source), np.empty_like(source), df.function(reduced)
        steps: dict[str, Step] = {
            "dualflow": partial(compiled, x),
            "dualflow, eager": partial(reduced, x),
            "mpi4py": partial(communicator.Allreduce, source, target),
        }
        figures[name] = blocks_of(steps, communicator.Barrier, rounds * blocks, calls)
    return figures


def gloo_collectives(rank: int, store: str, quick: bool, rounds: int) -> dict[str, dict[str, float]]:
    """The seconds of each all-reduce in this worker, by torch's gloo."""
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    figures = {}
    for name, (nbytes, calls, blocks) in (QUICK_COLLECTIVES if quick else COLLECTIVES).items():
        tensor = torch.zeros(nbytes // 4)
        steps: dict[str, Step] = {"gloo": partial(distributed.all_reduce, tensor)}
        figures[name] = blocks_of(steps, distributed.barrier, rounds * blocks, calls)
    distributed.destroy_process_group()
    return figures


def models(quick: bool) -> dict[str, tuple[int, list[int], int]]:
    """The models that are trained."""
    return QUICK_MODELS if quick else MODELS


def training_step(batch: int, widths: Sequence[int]) -> Step:
    """A compiled step of a classifier on this worker's part of a batch, with gradients added over workers."""
    import dualflow as df

    strategy = df.distribute.MultiWorkerMirroredStrategy()
    rng = np.random.default_rng(0)
    pairs = list(itertools.pairwise(widths))
    weights = [df.Variable((rng.normal(size=pair) / pair[0] ** 0.5).astype(np.float32)) for pair in pairs]
    own = batch // strategy.num_replicas_in_sync
    x = df.constant(rng.normal(size=(own, widths[0])).astype(np.float32))
    labels = df.constant(rng.integers(0, widths[-1], own).astype(np.int32))

    def replica(x: Any, labels: Any) -> None:
        with df.GradientTape() as tape:
            for i, w in enumerate(weights):
                x = df.tanh(x @ w) if i < len(weights) - 1 else x @ w
            errors = df.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
            loss = df.reduce_sum(errors) / batch
        gradients = tape.gradient(loss, weights)
        for w, g in zip(weights, all_reduced(gradients), strict=True):
            w.assign_sub(0.1 * g)

    step = df.function(lambda x, labels: strategy.run(replica, args=(x, labels)))
    return lambda: step(x, labels)


def steps(quick: bool, rounds: int) -> dict[str, float]:
    """The seconds of a training step of each model in this worker."""
    figures = {}
    for name, (batch, widths, calls) in models(quick).items():
        step = training_step(batch, widths)
        figures[name] = blocks_of({name: step}, lambda: None, rounds, calls)[name]
    return figures


def shares(quick: bool, rounds: int) -> dict[str, float]:
    """The part of the time of each model's steps that this worker is in collectives, by the profiler."""
    import dualflow as df

    figures = {}
    for name, (batch, widths, calls) in models(quick).items():
        step = training_step(batch, widths)
        step()
        with tempfile.TemporaryDirectory() as folder:
            with df.profiler.trace(folder) as file:
                for _ in range(rounds * calls):
                    step()
            events = json.loads(file.path.read_text(encoding="utf-8"))["traceEvents"]
        spans = [(e["cat"], e["dur"]) for e in events if e["ph"] == "X"]
        in_collectives = sum(dur for kind, dur in spans if kind == "collective")
        figures[name] = in_collectives / sum(dur for kind, dur in spans if kind == "call")
    return figures


def state(quick: bool, rounds: int, *, shard: bool) -> dict[str, float]:
    """Adam's state in this worker, the memory of its process, and a step of the largest model, by Keras.

    The memory is the resident one after the steps: code, variables, gradients and the buffers of collectives.
    """
    import dualflow as df

    strategy = df.distribute.MultiWorkerMirroredStrategy(shard_optimizer_state=shard)
    batch, widths, _ = list(models(quick).values())[-1]
    keras: Any = df.keras
    with strategy.scope():
        layers = [keras.layers.Dense(n, "tanh") for n in widths[1:]]
        model = keras.Sequential([keras.Input([widths[0]]), *layers])
        model.compile("adam", "mse")
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(batch, n)).astype(np.float32) for n in (widths[0], widths[-1]))
    best = math.inf
    for _ in range(rounds + 1):
        start = time.perf_counter()
        model.fit(x, y, batch_size=batch, epochs=1, verbose=0)
        best = min(best, time.perf_counter() - start)
    slots = sum(math.prod(v.shape) for v in model.optimizer.variables)
    return {"state": 4.0 * slots, "resident": resident_bytes(), "step": best}


def resident_bytes() -> float:
    """The resident memory of this process, by Linux's /proc."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


PARTS: Final[dict[str, Callable[[bool, int], Any]]] = {
    "collectives": collectives,
    "steps": steps,
    "shares": shares,
    "whole-state": partial(state, shard=False),
    "sharded-state": partial(state, shard=True),
}


def in_workers(part: str, workers: int, options: argparse.Namespace) -> Any:
    """The figures of a part in the first of several workers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "dualflow", "launch", "-n", str(workers)]
        command += ["-m", "benchmarks.several_machines", "--part", part, *_same(options)]
        one_thread = {"DUALFLOW_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        _run([*command, "--json", str(path)], {**os.environ, **one_thread})
        return json.loads(path.read_text(encoding="utf-8"))


def with_gloo(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The figures of gloo's first worker."""
    with tempfile.TemporaryDirectory() as folder:
        path, store = Path(folder) / "figures.json", Path(folder) / "store"
        command = [options.torch_python, "-m", "benchmarks.several_machines", "--part", "gloo"]
        command += ["--store", str(store), *_same(options)]
        other = subprocess.Popen([*command, "--rank", "1"], stderr=subprocess.DEVNULL)
        try:
            _run([*command, "--rank", "0", "--json", str(path)], dict(os.environ))
        except BaseException:
            other.kill()
            raise
        finally:
            other.wait()
        figures: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
        return figures


def _same(options: argparse.Namespace) -> list[str]:
    """The options of a part."""
    return ["--rounds", str(options.rounds), *["--quick"] * options.quick]


def _run(command: Sequence[str], environment: dict[str, str]) -> None:
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{ended.stdout}{ended.stderr}")


def has_torch(python: str) -> bool:
    """Whether a Python has torch."""
    if python == sys.executable:
        return find_spec("torch") is not None
    return subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def collective_lines(figures: dict[str, dict[str, float]]) -> Iterator[str]:
    """The rows of the table of collectives: microseconds, and dualflow's divided by the best others."""
    names = list(next(iter(figures.values())))
    yield f"| all-reduce, us | {' | '.join(names)} | dualflow / best other |"
    yield "| :--- |" + " ---: |" * (len(names) + 1)
    for size, seconds in figures.items():
        best = min(s for name, s in seconds.items() if not name.startswith("dualflow"))
        cells = " | ".join(f"{1e6 * seconds[name]:,.1f}" for name in names)
        yield f"| {size} | {cells} | {seconds['dualflow'] / best:.2f} |"


def step_lines(by_workers: dict[int, dict[str, float]], shares: dict[str, float]) -> Iterator[str]:
    """The rows of the table of training steps."""
    yield "| step, ms | 1 worker | 2 workers | speed-up | in collectives |"
    yield "| :--- | ---: | ---: | ---: | ---: |"
    for name, alone in by_workers[1].items():
        both = by_workers[2][name]
        times = f"{1e3 * alone:.3g} | {1e3 * both:.3g}"
        yield f"| {name} | {times} | {alone / both:.2f} | {shares[name]:.0%} |"


def state_lines(figures: dict[int, dict[str, dict[str, float]]]) -> Iterator[str]:
    """The rows of the table of optimizer state: megabytes of a worker, and milliseconds."""
    yield "| workers | state, MB | sharded | resident, MB | sharded | epoch of one step, ms | sharded |"
    yield "| ---: |" + " ---: |" * 6
    for workers, by_part in figures.items():
        whole, sharded = by_part["whole-state"], by_part["sharded-state"]
        pairs = [("state", 1e-6), ("resident", 1e-6), ("step", 1e3)]
        cells = [f"{unit * x[name]:,.0f}" for name, unit in pairs for x in (whole, sharded)]
        yield f"| {workers} | {' | '.join(cells)} |"


def main() -> None:
    parser = command_line("several_machines", __doc__)
    parser.add_argument("--rounds", type=int, default=10, help="rounds of blocks of calls (default: 10)")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument("--torch-python", default=sys.executable, help="a Python with torch, for gloo")
    parser.add_argument("--part", choices=[*PARTS, "gloo"], help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is not None:
        _run_part(options)
        return
    compared = in_workers("collectives", 2, options)
    if has_torch(options.torch_python):
        for size, seconds in with_gloo(options).items():
            compared[size] |= seconds
    else:
        print(f"There is no torch in {options.torch_python}, so gloo is left out: --torch-python.\n")
    print(*collective_lines(compared), "", sep="\n", flush=True)
    trained = {workers: in_workers("steps", workers, options) for workers in (1, 2)}
    shared = in_workers("shares", 2, options)
    print(*step_lines(trained, shared), "", sep="\n", flush=True)
    states = {
        workers: {part: in_workers(part, workers, options) for part in ("whole-state", "sharded-state")}
        for workers in (2, 4)
    }
    print(*state_lines(states), "", sep="\n", flush=True)
    training = {
        name: Training(trained[1][name], 4.0 * sum(a * b for a, b in itertools.pairwise(widths)))
        for name, (_, widths, _) in models(options.quick).items()
    }
    for name, measured in training.items():
        print(f"{name}: {1e3 * measured.compute:.3g} ms, {measured.nbytes / 1e6:.3g} MB of gradients\n")
        print(*lines(measured, NETWORKS), "", sep="\n")
    parameters = {name: dataclasses.asdict(measured) for name, measured in training.items()}
    figures = {
        "collectives": compared,
        "steps": trained,
        "shares": shared,
        "models": parameters,
        "states": states,
    }
    write_json(options.json, figures)


def _run_part(options: argparse.Namespace) -> None:
    """Measure a part in this worker; the first one writes the figures."""
    if options.part == "gloo":
        rank, figures = (
            options.rank,
            gloo_collectives(options.rank, options.store, options.quick, options.rounds),
        )
    else:
        figures = PARTS[options.part](options.quick, options.rounds)
        import dualflow as df

        rank = df.distribute.MultiWorkerMirroredStrategy().cluster_resolver.task_id
    if rank == 0:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()
