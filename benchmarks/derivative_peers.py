"""Compares the times of derivatives with jax and torch.func, if they are installed.

    python -m benchmarks.derivative_peers
    python -m benchmarks.derivative_peers --peers dualflow,jax --json figures.json

A row is one compiled call of a network of tanh layers, in ms: the fastest of many. Each library runs in
processes of its own, which are interleaved. Results must agree with those of the first peer. "checkpoint" is
a gradient that stores only the inputs of layers: ``recompute_grad``, ``jax.checkpoint``,
``torch.utils.checkpoint``. "eager gradient" is that of two layers and four examples, not compiled.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from benchmarks.processes import figures_of
from benchmarks.tables import command_line, write_json

PEERS: Final = ("dualflow", "jax", "torch")
ROWS: Final = (
    "jvp",
    "vmap",
    "gradients for each example",
    "jacfwd",
    "hessian",
    "gradient",
    "checkpoint",
    "eager gradient",
)
Calls = dict[str, Callable[[], Any]]
Array = np.ndarray[Any, Any]


def numbers(quick: bool) -> tuple[list[Array], Array]:
    """The layers' matrices, and the examples."""
    rng, width, layers, examples = np.random.default_rng(0), *((4, 2, 3) if quick else (48, 6, 128))
    scale = np.float32(width**-0.5)
    matrices = [rng.standard_normal((width, width)).astype(np.float32) * scale for _ in range(layers)]
    return matrices, rng.standard_normal((examples, width)).astype(np.float32)


def of_dualflow(matrices: list[Array], x: Array) -> Calls:
    import dualflow as df

    ad, ws, xs = df.autodiff, [df.constant(w) for w in matrices], df.constant(x)

    def layer(x: Any, w: Any) -> Any:
        return df.tanh(df.linalg.matvec(w, x))

    def network(ws: Any, x: Any, layer: Any = layer) -> Any:
        for w in ws:
            x = layer(x, w)
        return x

    def loss(ws: Any, x: Any, layer: Any = layer) -> Any:
        return df.reduce_sum(network(ws, x, layer) ** 2)

    def gradient(kind: Any, ws: Any = ws) -> Any:
        def computed(xs: Any) -> Any:
            with df.GradientTape() as tape:
                tape.watch(ws)
                total = loss(ws, xs, kind)
            return tape.gradient(total, ws)

        return computed

    calls = {
        "jvp": lambda xs: ad.jvp(lambda x: network(ws, x), [xs], [xs])[1],
        "vmap": lambda xs: ad.vmap(lambda x: network(ws, x))(xs),
        "gradients for each example": lambda xs: ad.vmap(ad.grad(lambda ws, x: loss(ws, x)), (None, 0))(
            ws, xs
        ),
        "jacfwd": lambda xs: ad.jacobian(lambda x: network(ws, x), mode="forward")(xs[0]),
        "hessian": lambda xs: ad.hessian(lambda x: loss(ws, x))(xs[0]),
        "gradient": gradient(layer),
        "checkpoint": gradient(df.recompute_grad(layer)),
    }
    compiled = {name: df.function(call) for name, call in calls.items()}
    few = xs[:4]
    compiled["eager gradient"] = lambda xs: gradient(layer, ws[:2])(few)

    def arrays(call: Any) -> Any:
        return df.nest.map_structure(np.asarray, call(xs))

    return {name: functools.partial(arrays, call) for name, call in compiled.items()}


def of_jax(matrices: list[Array], x: Array) -> Calls:
    import jax
    import jax.numpy as jnp

    ws, xs = [jnp.asarray(w) for w in matrices], jnp.asarray(x)

    def layer(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w.T)

    def network(ws: Any, x: Any, layer: Any = layer) -> Any:
        for w in ws:
            x = layer(x, w)
        return x

    def loss(ws: Any, x: Any, layer: Any = layer) -> Any:
        return jnp.sum(network(ws, x, layer) ** 2)

    calls = {
        "jvp": lambda ws, xs: jax.jvp(lambda x: network(ws, x), [xs], [xs])[1],
        "vmap": lambda ws, xs: jax.vmap(lambda x: network(ws, x))(xs),
        "gradients for each example": lambda ws, xs: jax.vmap(jax.grad(loss), (None, 0))(ws, xs),
        "jacfwd": lambda ws, xs: jax.jacfwd(lambda x: network(ws, x))(xs[0]),
        "hessian": lambda ws, xs: jax.hessian(lambda x: loss(ws, x))(xs[0]),
        "gradient": lambda ws, xs: jax.grad(loss)(ws, xs),
        "checkpoint": lambda ws, xs: jax.grad(loss)(ws, xs, jax.checkpoint(layer)),
    }
    compiled = {name: jax.jit(call) for name, call in calls.items()}
    few = xs[:4]
    compiled["eager gradient"] = lambda ws, xs: jax.grad(loss)(ws[:2], few)

    def arrays(call: Any) -> Any:
        return jax.tree.map(np.asarray, jax.block_until_ready(call(ws, xs)))

    return {name: functools.partial(arrays, call) for name, call in compiled.items()}


def of_torch(matrices: list[Array], x: Array) -> Calls:
    import torch
    from torch.utils.checkpoint import checkpoint

    func = torch.func
    ws, xs = [torch.from_numpy(w) for w in matrices], torch.from_numpy(x)

    def layer(x: Any, w: Any) -> Any:
        return torch.tanh(x @ w.T)

    def network(ws: Any, x: Any, layer: Any = layer) -> Any:
        for w in ws:
            x = layer(x, w)
        return x

    def loss(ws: Any, x: Any, layer: Any = layer) -> Any:
        return (network(ws, x, layer) ** 2).sum()

    def gradient(kind: Any, ws: Any = ws, xs: Any = xs) -> Any:
        def computed() -> Any:
            leaves = [w.clone().requires_grad_() for w in ws]
            return torch.autograd.grad(loss(leaves, xs, kind), leaves)

        return computed

    return {
        "jvp": lambda: func.jvp(lambda x: network(ws, x), (xs,), (xs,))[1],
        "vmap": lambda: func.vmap(lambda x: network(ws, x))(xs),
        "gradients for each example": lambda: func.vmap(func.grad(loss), (None, 0))(ws, xs),
        "jacfwd": lambda: func.jacfwd(lambda x: network(ws, x))(xs[0]),
        "hessian": lambda: func.hessian(lambda x: loss(ws, x))(xs[0]),
        "gradient": gradient(layer),
        "checkpoint": gradient(lambda x, w: checkpoint(layer, x, w, use_reentrant=False)),
        "eager gradient": gradient(layer, ws[:2], xs[:4]),
    }


MAKERS: Final[dict[str, Callable[[list[Array], Array], Calls]]] = {
    "dualflow": of_dualflow,
    "jax": of_jax,
    "torch": of_torch,
}


def measure(peer: str, quick: bool) -> dict[str, list[float]]:
    """For each row its time in ms, and the sum of the absolute values of its result, in this process."""
    figures = {}
    for name, call in MAKERS[peer](*numbers(quick)).items():
        result = call()
        leaves = result if isinstance(result, list | tuple) else [result]
        total = float(sum(np.abs(np.asarray(leaf)).sum(dtype=np.float64) for leaf in leaves))
        times = []
        for _ in range(2 if quick else 50):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        figures[name] = [min(times) * 1e3, total]
    return figures


def in_process(peer: str, quick: bool) -> dict[str, list[float]]:
    """The figures of one peer, in a new process."""
    arguments = ["--measure", peer, *["--quick"] * quick]
    figures: dict[str, list[float]] = figures_of(
        "derivative_peers", arguments, {"CUDA_VISIBLE_DEVICES": "-1"}
    )
    return figures


def table(figures: dict[str, dict[str, float]]) -> str:
    """The text of a table with a line for each row, and a column for each peer."""
    lines = [f"{'ms':30}" + "".join(f"{peer:>12}" for peer in figures)]
    lines += [f"{name:30}" + "".join(f"{times[name]:12.3f}" for times in figures.values()) for name in ROWS]
    return "\n".join(lines)


def main() -> None:
    parser = command_line("derivative_peers", __doc__)
    parser.add_argument("--peers", default=",".join(PEERS), help="by commas; those installed by default")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each figure (default: 3)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and one round: does it run at all?")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.quick)))
        return
    peers = [peer for peer in options.peers.split(",") if find_spec(peer)]
    runs = [
        {peer: in_process(peer, options.quick) for peer in peers}
        for _ in range(1 if options.quick else options.rounds)
    ]
    for peer in peers[1:]:
        for name in ROWS:
            mine, theirs = (runs[0][p][name][1] for p in (peers[0], peer))
            if not np.isclose(mine, theirs, rtol=1e-3):
                raise SystemExit(f"{name}: {peer} has {theirs}, {peers[0]} {mine}")
    figures = {peer: {name: min(run[peer][name][0] for run in runs) for name in ROWS} for peer in peers}
    print(table(figures))
    write_json(options.json, figures)


if __name__ == "__main__":
    main()
