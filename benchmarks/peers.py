"""Compares the time and memory of calls with TensorFlow, jax and torch, if they are installed.

    python -m benchmarks --peers
    python -m benchmarks --peers --only softmax --rounds 1

Each library runs each row in a process of its own; the libraries are interleaved, and the fastest call of all
counts. TensorFlow and jax compile the function, torch runs it op by op; "one thread" is dualflow on one
thread. Results must agree with dualflow's. The memory is the growth of the process during the first two
calls, including results and compiling; it is measured on Linux only. The benchmark takes some minutes.
"""

from __future__ import annotations

import gc
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from benchmarks.branches import branch_rows
from benchmarks.processes import figures_of

Array = np.ndarray[Any, Any]
Body = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of both tables.

    Attributes:
        name: the name of the row.
        inputs: the arguments, as arrays.
        body: a function of a library's functions and its tensors.
    """

    name: str
    inputs: tuple[Array, ...]
    body: Body


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a row in a library: seconds of a call, MiB at its peak, and the sum of its result."""

    seconds: float
    mebibytes: float | None
    total: float


def rows(quick: bool) -> Iterator[Row]:
    """Every row; ``quick`` selects tiny sizes, for tests of the benchmark."""
    yield from whole_rows(quick)
    yield from (Row(*row) for row in branch_rows(np.random.default_rng(0), quick))


def whole_rows(quick: bool) -> Iterator[Row]:
    """The rows whose calls run one after another."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return rng.standard_normal([min(n, 8) for n in shape] if quick else shape).astype(np.float32)

    million = normal(1 << 22)
    matrix = normal(4096, 1024)
    yield Row("gelu, 4M", (million,), gelu)
    yield Row("sum of squares, 4M", (million,), lambda m, x: m.sum(x * x))
    yield Row("cumulative sum, 4M", (million,), lambda m, x: m.cumsum(x))
    yield Row("softmax, 4096x1024", (matrix,), lambda m, x: m.softmax(x))
    yield Row("layernorm, 4096x1024", (matrix,), layernorm)
    yield Row("transpose, 4096x1024", (matrix,), lambda m, x: m.reshape(m.transpose(x), [-1]))
    yield Row("sort rows, 4096x1024", (matrix,), lambda m, x: m.sort(x))
    yield Row("matrix product, 1024", (normal(1024, 1024),), lambda m, x: m.matmul(x, x))
    yield Row("convolution 3x3, 16x56x56x64", (normal(16, 56, 56, 64), normal(3, 3, 64, 64)), convolution)
    widths = (784, 512, 512, 10)
    weights = [normal(a, b) * np.float32(0.05) for a, b in itertools.pairwise(widths)]
    yield Row("gradient, MLP 784-512-512-10", (normal(128, 784), *weights), gradient)


def gelu(m: Any, x: Any) -> Any:
    return 0.5 * x * (1.0 + m.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def layernorm(m: Any, x: Any) -> Any:
    centred = x - m.mean(x)
    return centred / m.sqrt(m.mean(centred * centred) + 1e-5)


def convolution(m: Any, x: Any, kernel: Any) -> Any:
    return m.convolve(x, kernel)


def gradient(m: Any, x: Any, *weights: Any) -> Any:
    def loss(*weights: Any) -> Any:
        h = x
        for w in weights:
            h = m.tanh(m.matmul(h, w))
        return m.sum(h * h)

    return m.gradient(loss, weights)


def tensorflows(tf: Any) -> SimpleNamespace:
    """The functions of a library with TensorFlow's names."""

    def slopes(loss: Body, weights: Sequence[Any]) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(weights)
            total = loss(*weights)
        return tape.gradient(total, weights)

    return SimpleNamespace(
        tanh=tf.tanh,
        sqrt=tf.sqrt,
        sum=tf.reduce_sum,
        mean=lambda x: tf.reduce_mean(x, axis=-1, keepdims=True),
        softmax=tf.nn.softmax,
        cumsum=tf.cumsum,
        transpose=tf.transpose,
        reshape=tf.reshape,
        sort=tf.sort,
        concat=lambda xs: tf.concat(xs, -1),
        matmul=tf.matmul,
        convolve=lambda x, k: tf.nn.conv2d(x, k, 1, "SAME"),
        gradient=slopes,
        tensor=tf.constant,
        compiled=tf.function,
        ready=lambda x: x,
        array=np.asarray,
    )


def of_eager() -> SimpleNamespace:
    import dualflow as df

    return SimpleNamespace(**{**vars(tensorflows(df)), "compiled": lambda call: call})


def of_dualflow() -> SimpleNamespace:
    import dualflow as df

    return tensorflows(df)


def of_tensorflow() -> SimpleNamespace:
    import tensorflow as tf

    return tensorflows(tf)


def of_jax() -> SimpleNamespace:
    import jax
    import jax.numpy as jnp

    def convolve(x: Any, k: Any) -> Any:
        return jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return SimpleNamespace(
        tanh=jnp.tanh,
        sqrt=jnp.sqrt,
        sum=jnp.sum,
        mean=lambda x: jnp.mean(x, axis=-1, keepdims=True),
        softmax=jax.nn.softmax,
        cumsum=jnp.cumsum,
        transpose=jnp.transpose,
        reshape=jnp.reshape,
        sort=jnp.sort,
        concat=lambda xs: jnp.concatenate(xs, -1),
        matmul=jnp.matmul,
        convolve=convolve,
        gradient=lambda loss, weights: jax.grad(loss, tuple(range(len(weights))))(*weights),
        tensor=jnp.asarray,
        compiled=jax.jit,
        ready=jax.block_until_ready,
        array=np.asarray,
    )


def of_torch() -> SimpleNamespace:
    import torch

    on_gpu = torch.cuda.is_available()

    def ready(results: Any) -> Any:
        if on_gpu:
            torch.cuda.synchronize()
        return results

    def convolve(x: Any, k: Any) -> Any:
        channels_first = x.permute(0, 3, 1, 2), k.permute(3, 2, 0, 1)
        return torch.nn.functional.conv2d(*channels_first, padding="same").permute(0, 2, 3, 1)

    def slopes(loss: Body, weights: Sequence[Any]) -> Any:
        leaves = [w.detach().requires_grad_() for w in weights]
        return torch.autograd.grad(loss(*leaves), leaves)

    return SimpleNamespace(
        tanh=torch.tanh,
        sqrt=torch.sqrt,
        sum=torch.sum,
        mean=lambda x: x.mean(-1, keepdim=True),
        softmax=lambda x: torch.softmax(x, -1),
        cumsum=lambda x: torch.cumsum(x, 0),
        transpose=lambda x: x.T,
        reshape=torch.reshape,
        sort=lambda x: torch.sort(x).values,
        concat=lambda xs: torch.cat(xs, -1),
        matmul=torch.matmul,
        convolve=convolve,
        gradient=slopes,
        tensor=lambda x: torch.from_numpy(x).to("cuda" if on_gpu else "cpu"),
        compiled=lambda call: call,
        ready=ready,
        array=lambda x: x.cpu().numpy(),
    )


LIBRARIES: Final[dict[str, Callable[[], SimpleNamespace]]] = {
    "dualflow": of_dualflow,
    "eager": of_eager,
    "one thread": of_dualflow,
    "tensorflow": of_tensorflow,
    "jax": of_jax,
    "torch": of_torch,
}

OWN: Final = ("dualflow", "eager", "one thread")
"""The libraries that are dualflow: compiled, without compiling, and compiled on one thread."""


def installed() -> list[str]:
    """The installed libraries."""
    return [name for name in LIBRARIES if name in OWN or find_spec(name)]


def measure(library: str, name: str, quick: bool) -> Cost:
    """The cost of the row of this name, in this process."""
    m = LIBRARIES[library]()
    call_ready(m, m.compiled(lambda x: m.tanh(x) * 2.0), [m.tensor(np.ones(3, np.float32))])
    (row,) = (row for row in rows(quick) if row.name == name)
    inputs = [m.tensor(x) for x in row.inputs]
    call = m.compiled(lambda *tensors: row.body(m, *tensors))
    gc.collect()
    before = resident("VmRSS", begin=True)
    results = [call_ready(m, call, inputs) for _ in range(2)][-1]
    peak = resident("VmHWM")
    memory = None if before is None or peak is None else max(0.0, peak - before)
    leaves = results if isinstance(results, list | tuple) else [results]
    total = float(sum(np.abs(m.array(leaf)).sum(dtype=np.float64) for leaf in leaves))
    del results, leaves
    (seconds,) = fastest([lambda: call_ready(m, call, inputs)], 0.0 if quick else 0.5)
    return Cost(seconds, memory, total)


def call_ready(m: SimpleNamespace, call: Body, inputs: Sequence[Any]) -> Any:
    """The result of the call, after the end of its computation."""
    return m.ready(call(*inputs))


def fastest(calls: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """Seconds of the fastest of many calls of each function; they are called alternately for ``seconds``."""
    best, end = [float("inf")] * len(calls), time.perf_counter() + seconds
    while True:
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            done = time.perf_counter()
            best[i] = min(best[i], done - start)
        if done > end:
            return best


def resident(which: str, *, begin: bool = False) -> float | None:
    """The memory of the process in MiB: current (``VmRSS``), or the peak since ``begin`` (``VmHWM``)."""
    with suppress(OSError):
        if begin:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(which):
                return int(line.split()[1]) / 1024
    return None


def in_process(library: str, name: str, quick: bool, *, gpu: bool = False) -> Cost:
    """The cost of a row in one library, in a new process; with ``gpu``, on a GPU if there is one."""
    with tempfile.TemporaryDirectory() as cache:  # so that each library compiles
        environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "DUALFLOW_CACHE_DIR": cache}
        if not gpu:
            environment["CUDA_VISIBLE_DEVICES"] = "-1"
        if library == "one thread":
            environment["DUALFLOW_NUM_THREADS"] = "1"
        return Cost(*figures_of("peers", [library, name, *["quick"] * quick], environment))


def compare(words: Sequence[str], quick: bool, rounds: int) -> dict[str, dict[str, Cost]]:
    """The costs of each row whose name has one of ``words``, by library: the fastest of ``rounds`` processes.

    Raises:
        SystemExit: a library fails, or its result differs.
    """
    names = [row.name for row in rows(quick) if any(word in row.name for word in words)]
    return {name: interleaved(name, quick, rounds) for name in names}


def interleaved(name: str, quick: bool, rounds: int) -> dict[str, Cost]:
    """The costs of a row by library; the processes of the libraries are interleaved."""
    libraries = installed()
    runs = [{library: in_process(library, name, quick) for library in libraries} for _ in range(rounds)]
    expected = runs[0]["dualflow"].total
    for library, cost in runs[0].items():
        if not np.isclose(cost.total, expected, rtol=1e-3):
            raise SystemExit(f"{name}: {library} has {cost.total}, dualflow {expected}")
    return {library: min([run[library] for run in runs], key=lambda c: c.seconds) for library in libraries}


if __name__ == "__main__":
    _, library_name, row_name, *flags = sys.argv
    print(json.dumps(astuple(measure(library_name, row_name, bool(flags)))))
