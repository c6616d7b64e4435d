"""The workloads: each as a function of dualflow tensors and in NumPy, on the same inputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dualflow as df

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """One row of the table.

    Attributes:
        name: the row's name.
        inputs: the arguments, as NumPy arrays.
        build: creates the function of tensors and its variables; timed eagerly and under ``df.function``.
        reference: creates the same function of arrays, in NumPy.
    """

    name: str
    inputs: tuple[Array, ...]
    build: Callable[[], Callable[..., Any]]
    reference: Callable[[], Callable[..., Any]]


def workloads(quick: bool = False) -> Iterator[Workload]:
    """Every workload; ``quick`` selects tiny sizes, for tests of the benchmark."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float32)

    small = normal(100)
    big = normal(1 << (12 if quick else 22))
    matrix = normal(64, 128) if quick else normal(4096, 1024)
    count = 1 << (11 if quick else 21)
    ranges = ((5, 30), (1, 100), (0.25, 10))
    options = tuple(rng.uniform(low, high, count).astype(np.float32) for low, high in ranges)

    yield Workload("add, 100 floats", (small,), lambda: lambda x: x + x, lambda: lambda x: x + x)
    yield Workload(
        "x + 1, 100 floats", (small,), lambda: lambda x: x + 1.0, lambda: lambda x: x + np.float32(1)
    )
    yield Workload("chain, 20 ops", (small,), lambda: chain, lambda: chain_numpy)
    tiny = parameters(rng, (4, 8, 1))
    yield Workload(
        "gradient, tiny MLP", (normal(16, 4),), lambda: gradient_of(tiny), lambda: gradient_of_numpy(tiny)
    )
    yield Workload("gelu, 4M", (big,), lambda: gelu, lambda: gelu_numpy)
    yield Workload("Black-Scholes, 2M", options, lambda: black_scholes, lambda: black_scholes_numpy)
    yield Workload("softmax, 4096x1024", (matrix,), lambda: df.nn.softmax, lambda: softmax_numpy)
    yield Workload("layernorm, 4096x1024", (matrix,), lambda: layernorm, lambda: layernorm_numpy)
    yield Workload(
        "sum of squares, 4M", (big,), lambda: lambda x: df.reduce_sum(x * x), lambda: lambda x: np.sum(x * x)
    )
    for widths, batch in (((784, 128, 10), 32), ((784, 512, 512, 10), 128)):
        sizes = tuple(max(10, n // 32) for n in widths) if quick else widths
        yield sgd_step(f"SGD step, MLP {'-'.join(map(str, widths))}, batch {batch}", rng, sizes, batch)
    iterations = np.array(100 if quick else 100_000, np.int32)
    yield Workload("while loop, 1e5 sin steps", (iterations,), lambda: sin_loop, lambda: sin_loop_python)
    start = np.array(77031, np.int32)
    yield Workload("while loop, collatz 77031", (start,), lambda: collatz, lambda: collatz_python)
    steps, batch, width = (40, 8, 32) if quick else (1000, 8, 32)
    weights = 0.1 * normal(width, width), 0.1 * normal(width, width), 0.1 * normal(width)
    yield Workload(
        "RNN, 1000 steps, forward and backward",
        (normal(steps, batch, width), *weights),
        lambda: recurrent_gradient,
        lambda: recurrent_gradient_numpy,
    )


def chain(x: Any) -> Any:
    """Twenty ops in a row."""
    for _ in range(10):
        x = x * 0.5 + 1.0
    return x


def chain_numpy(x: Array) -> Array:
    half, one = np.float32(0.5), np.float32(1)
    for _ in range(10):
        x = x * half + one
    return x


def gelu(x: Any) -> Any:
    """The tanh form of the Gaussian error linear unit."""
    return 0.5 * x * (1.0 + df.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def gelu_numpy(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


RATE, VOLATILITY = 0.02, 0.3


def black_scholes(price: Any, strike: Any, years: Any) -> Any:
    """The value of European call options."""
    spread = VOLATILITY * df.sqrt(years)
    near = (df.math.log(price / strike) + (RATE + VOLATILITY**2 / 2) * years) / spread
    far = near - spread

    def share(z: Any) -> Any:
        return 0.5 * (1.0 + df.math.erf(z * math.sqrt(0.5)))

    return price * share(near) - strike * df.exp(-RATE * years) * share(far)


def black_scholes_numpy(price: Array, strike: Array, years: Array) -> Array:
    """NumPy has no erf: Abramowitz and Stegun's 7.1.26, of absolute error 1.5e-7, stands in for it."""
    spread = VOLATILITY * np.sqrt(years)
    near = (np.log(price / strike) + (RATE + VOLATILITY**2 / 2) * years) / spread
    far = near - spread

    def share(z: Array) -> Array:
        x = np.abs(z) * np.float32(math.sqrt(0.5))
        t = 1 / (1 + np.float32(0.3275911) * x)
        tail = t * (
            0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
        )
        upper = 1 - 0.5 * tail * np.exp(-x * x)
        return np.where(z < 0, 1 - upper, upper)

    return price * share(near) - strike * np.exp(-RATE * years) * share(far)


def softmax_numpy(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x: Any) -> Any:
    """Rows of mean 0 and variance 1."""
    centred = x - df.reduce_mean(x, axis=-1, keepdims=True)
    return centred / df.sqrt(df.reduce_mean(centred**2, axis=-1, keepdims=True) + 1e-5)


def layernorm_numpy(x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-5))


def parameters(rng: np.random.Generator, widths: Sequence[int]) -> list[tuple[Array, Array]]:
    """The weights and biases of a multilayer perceptron."""
    return [
        ((rng.standard_normal((a, b)) * math.sqrt(2 / a)).astype(np.float32), np.zeros(b, np.float32))
        for a, b in itertools.pairwise(widths)
    ]


def gradient_of(layers: list[tuple[Array, Array]]) -> Callable[..., Any]:
    """The gradient of a tanh network's mean square."""
    variables = [(df.Variable(w), df.Variable(b)) for w, b in layers]
    flat = [v for pair in variables for v in pair]

    def gradient(x: Any) -> Any:
        with df.GradientTape() as tape:
            for weight, bias in variables:
                x = df.tanh(df.matmul(x, weight) + bias)
            loss = df.reduce_mean(x * x)
        return tape.gradient(loss, flat)

    return gradient


def gradient_of_numpy(layers: list[tuple[Array, Array]]) -> Callable[..., Any]:
    """:func:`gradient_of` in NumPy, with a backward pass written by hand."""

    def gradient(x: Array) -> list[Array]:
        activations = [x]
        for weight, bias in layers:
            activations.append(np.tanh(activations[-1] @ weight + bias))
        slopes: list[Array] = []
        cotangent = activations[-1] * np.float32(2 / activations[-1].size)
        for (weight, _), before, after in zip(
            layers[::-1], activations[-2::-1], activations[:0:-1], strict=True
        ):
            cotangent = cotangent * (1 - after * after)
            slopes = [before.T @ cotangent, cotangent.sum(axis=0), *slopes]
            cotangent = cotangent @ weight.T
        return slopes

    return gradient


LEARNING_RATE = 0.01


def sgd_step(name: str, rng: np.random.Generator, widths: Sequence[int], batch: int) -> Workload:
    """One step of gradient descent on a classifier; it returns the loss and updates the weights."""
    layers = parameters(rng, widths)
    images = rng.random((batch, widths[0]), dtype=np.float32)
    labels = rng.integers(0, widths[-1], batch).astype(np.int32)
    return Workload(name, (images, labels), lambda: descent(layers), lambda: descent_numpy(layers))


def descent(layers: list[tuple[Array, Array]]) -> Callable[..., Any]:
    """The step over variables that start as ``layers``."""
    variables = [(df.Variable(w), df.Variable(b)) for w, b in layers]
    flat = [v for pair in variables for v in pair]

    def step(x: Any, labels: Any) -> Any:
        with df.GradientTape() as tape:
            for weight, bias in variables[:-1]:
                x = df.nn.relu(df.matmul(x, weight) + bias)
            logits = df.matmul(x, variables[-1][0]) + variables[-1][1]
            losses = df.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = df.reduce_mean(losses)
        for variable, slope in zip(flat, tape.gradient(loss, flat), strict=True):
            variable.assign_sub(LEARNING_RATE * slope)
        return loss

    return step


def descent_numpy(layers: list[tuple[Array, Array]]) -> Callable[..., Any]:
    """:func:`descent` in NumPy, with a backward pass written by hand."""
    weights = [w.copy() for w, _ in layers]
    biases = [b.copy() for _, b in layers]

    def step(x: Array, labels: Array) -> Array:
        activations = [x]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            activations.append(np.maximum(activations[-1] @ weight + bias, 0))
        logits = activations[-1] @ weights[-1] + biases[-1]
        logits -= logits.max(axis=1, keepdims=True)
        e = np.exp(logits)
        sums = e.sum(axis=1, keepdims=True)
        rows = np.arange(len(labels))
        loss = np.mean(np.log(sums[:, 0]) - logits[rows, labels])
        cotangent = e / sums
        cotangent[rows, labels] -= 1
        cotangent /= np.float32(len(labels))
        for i in reversed(range(len(weights))):
            slope, shift = activations[i].T @ cotangent, cotangent.sum(axis=0)
            if i:
                cotangent = (cotangent @ weights[i].T) * (activations[i] > 0)
            weights[i] -= LEARNING_RATE * slope
            biases[i] -= LEARNING_RATE * shift
        return loss

    return step


def sin_loop(iterations: Any) -> Any:
    """A loop of cheap steps, each of which depends on the one before."""
    x = df.constant(1.0)
    for _ in df.range(iterations):
        x = x + df.sin(x) * 1e-3
    return x


def sin_loop_python(iterations: Array) -> float:
    """:func:`sin_loop` in plain Python, whose floats are faster than NumPy's."""
    x = 1.0
    for _ in range(int(iterations)):
        x += math.sin(x) * 1e-3
    return x


def collatz(n: Any) -> Any:
    """The number of steps from ``n`` to 1: a loop with a conditional."""
    count = df.constant(0)
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def collatz_python(start: Array) -> int:
    n, count = int(start), 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def recurrent_gradient(rows: Any, w: Any, u: Any, b: Any) -> Any:
    """The gradient of the squares of a recurrent network's last state, by its weights."""
    with df.GradientTape() as tape:
        tape.watch([w, u, b])
        start = df.zeros([rows.shape[1], rows.shape[2]])
        state = df.foldl(lambda h, x: df.tanh(h @ w + x @ u + b), rows, start)
        loss = df.reduce_sum(state * state)
    return tape.gradient(loss, [w, u, b])


def recurrent_gradient_numpy(rows: Array, w: Array, u: Array, b: Array) -> list[Array]:
    states = [np.zeros(rows.shape[1:], np.float32)]
    for x in rows:
        states.append(np.tanh(states[-1] @ w + x @ u + b))
    flow = 2 * states[-1]
    dw, du, db = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
    for x, before, after in zip(rows[::-1], states[-2::-1], states[:0:-1], strict=True):
        inside = flow * (1 - after * after)
        dw += before.T @ inside
        du += x.T @ inside
        db += inside.sum(0)
        flow = inside @ w.T
    return [dw, du, db]


def long_chain(x: Any, steps: int = 1000) -> Any:
    """A graph of five ops for each step."""
    for i in range(steps):
        x = x * 1.0001 + df.sin(x) * 0.001 * float(i % 7)
    return x
