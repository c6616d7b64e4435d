"""What dynamic sizes cost: functions traced with dynamic sizes, compared with the same ones of static sizes.

    python -m benchmarks.dynamic_sizes                       # every row: about a minute
    python -m benchmarks.dynamic_sizes --rows gelu,LSTM --json figures.json

Columns: milliseconds of the first call of each function; microseconds of the fastest later call of each, and
their ratio; the extra microseconds of a call with a new size, compared with the first call with other
arguments of this size (the median of several sizes). The two functions are called alternately in one process.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import dualflow as df
from benchmarks.tables import command_line, contains_word, print_table

WEIGHTS: Final = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32) * np.float32(0.1)
FILTERS: Final = np.random.default_rng(1).standard_normal((3, 3, 8, 16)).astype(np.float32)
DEPTHWISE_FILTERS: Final = np.random.default_rng(2).standard_normal((3, 3, 32, 1)).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class Program:
    """A function, the shapes of its arguments, and the axes of each that are dynamic.

    The last argument has integer elements if ``labels``. The sizes are those of an input signature, or else
    ``automatic`` sizes, after a call with other ones.
    """

    function: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    open_axes: tuple[int, ...] = (0,)
    labels: bool = False
    automatic: bool = False

    def dynamic(self) -> Callable[..., Any]:
        """The function with dynamic sizes."""
        if not self.automatic:
            return df.function(self.function, input_signature=self.signature)
        function = df.function(self.function)
        function(*self.arguments(change=1))
        return function

    @property
    def signature(self) -> list[df.TensorSpec]:
        specs = []
        for place, shape in enumerate(self.shapes):
            sizes = [None if axis in self.open_axes else size for axis, size in enumerate(shape)]
            specs.append(df.TensorSpec(sizes, df.int32 if self._is_label(place) else df.float32))
        return specs

    def arguments(self, change: int = 0) -> list[Any]:
        """Arguments whose dynamic sizes are larger by ``change``."""
        rng = np.random.default_rng(change)
        arguments = []
        for place, shape in enumerate(self.shapes):
            sizes = [size + change * (axis in self.open_axes) for axis, size in enumerate(shape)]
            floats = rng.standard_normal(sizes).astype(np.float32)
            arguments.append(
                df.constant((np.abs(floats) * 3 % 10).astype(np.int32) if self._is_label(place) else floats)
            )
        return arguments

    def _is_label(self, place: int) -> bool:
        return self.labels and place == len(self.shapes) - 1


def training_step() -> Callable[..., Any]:
    """A step of gradient descent of a network of two layers."""
    hidden, output = df.Variable(WEIGHTS), df.Variable(WEIGHTS.T[:, :10].copy())

    def step(x: Any, labels: Any) -> Any:
        with df.GradientTape() as tape:
            logits = df.nn.relu(x @ hidden) @ output
            losses = df.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = df.reduce_mean(losses)
        variables = [hidden, output]
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(1e-6 * gradient)
        return loss

    return step


def embedding_step() -> Callable[..., Any]:
    """A step of gradient descent of the rows of a table that a call gathers."""
    table = df.Variable(np.tile(WEIGHTS, (200, 1)))

    def step(weights: Any, words: Any) -> Any:
        with df.GradientTape() as tape:
            loss = df.reduce_sum(df.gather(table, words) * weights)
        table.assign_sub(1e-6 * df.convert_to_tensor(tape.gradient(loss, table)))
        return loss

    return step


def lstm(x: Any) -> Any:
    """The last state of a recurrent cell over the rows of ``x``."""
    state = cell = df.zeros([16, 64])
    for t in df.range(df.shape(x)[0]):
        gates = df.split(x[t] @ WEIGHTS + state @ WEIGHTS, 4, 1)
        update, forget, reset = (df.sigmoid(gate) for gate in gates[:3])
        cell = forget * cell + update * df.tanh(gates[3])
        state = reset * df.tanh(cell)
    return state


def attention(queries: Any, keys: Any, values: Any) -> Any:
    """Scaled dot-product attention."""
    return df.matmul(df.nn.softmax(df.matmul(queries, keys, transpose_b=True) * 0.125), values)


def convolution(images: Any) -> Any:
    """A convolution with a nonlinearity."""
    return df.nn.relu(df.nn.conv2d(images, FILTERS, 1, "SAME"))


def depthwise_gradients(images: Any) -> Any:
    """The gradients of a depthwise convolution."""
    with df.GradientTape() as tape:
        tape.watch(images)
        total = df.reduce_sum(df.sin(df.nn.depthwise_conv2d(images, DEPTHWISE_FILTERS, [1] * 4, "SAME")))
    return tape.gradient(total, images)


def pool_gradients(images: Any) -> Any:
    """The gradients of the means of windows."""
    with df.GradientTape() as tape:
        tape.watch(images)
        total = df.reduce_sum(df.sin(df.nn.avg_pool2d(images, 2, 2, "VALID")))
    return tape.gradient(total, images)


def normalised(images: Any) -> Any:
    """Batch normalisation with the moments of the batch."""
    mean, variance = df.nn.moments(images, [0, 1, 2])
    return df.nn.batch_normalization(images, mean, variance, None, None, 1e-5)


def relaxed_grid(grid: Any) -> Any:
    """A few steps of Jacobi's method with a border of zeros."""
    for _ in df.range(10):
        inner = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
        grid = df.pad(0.25 * inner, [[1, 1], [1, 1]])
    return grid


PROGRAMS: Final[dict[str, Program]] = {
    "add, 100": Program(lambda x: x + 1.0, [(100,)]),
    "gelu, 1M": Program(df.nn.gelu, [(1_000_000,)]),
    "sum, 1M": Program(df.reduce_sum, [(1_000_000,)]),
    "column means, 1000x1000": Program(lambda x: df.reduce_mean(x, 0), [(1000, 1000)], (0, 1)),
    "softmax, 4096x10": Program(df.nn.softmax, [(4096, 10)]),
    "softmax, 1000x1000": Program(df.nn.softmax, [(1000, 1000)], (0, 1)),
    "product, 512": Program(df.matmul, [(512, 512), (512, 512)], (0, 1)),
    "MLP step, 64": Program(training_step(), [(64, 64), (64,)], labels=True),
    "MLP step, 1024": Program(training_step(), [(1024, 64), (1024,)], labels=True),
    "attention, 8x128x64": Program(attention, [(8, 128, 64)] * 3, (0, 1)),
    "convolution, 4x28x28x8": Program(convolution, [(4, 28, 28, 8)], (0, 1, 2)),
    "pad, 1000x1000": Program(lambda x: df.pad(x, [[1, 1], [1, 1]]), [(1000, 1000)]),
    "tile, 1000x500": Program(lambda x: df.tile(x, [2, 2]), [(1000, 500)]),
    "search, 70000": Program(lambda x, y: df.searchsorted(df.cumsum(x * x), y), [(70_000,)] * 2),
    "embedding step, 1024": Program(embedding_step(), [(1024, 256), (1024,)], labels=True),
    "depthwise, 4x28x28x32": Program(depthwise_gradients, [(4, 28, 28, 32)]),
    "pool, 4x28x28x32": Program(pool_gradients, [(4, 28, 28, 32)]),
    "batch norm, 4x28x28x32": Program(normalised, [(4, 28, 28, 32)]),
    "grid with border, 300x256": Program(relaxed_grid, [(300, 256)], automatic=True),
    "LSTM, 100 steps": Program(lstm, [(100, 16, 64)]),
}


@dataclasses.dataclass(frozen=True)
class Row:
    """Seconds of the first and the fastest later calls, and the extra time of a new size."""

    first_static: float
    first_open: float
    static: float
    open: float
    new_size: float


def seconds(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    """The time of one call."""
    begun = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begun


def measure(program: Program, duration: float, sizes: int) -> Row:
    """Measure one program for ``duration`` seconds, and with as many new ``sizes``."""
    static: Callable[..., Any] = df.function(program.function)
    opened = program.dynamic()
    arguments = program.arguments()
    first_static, first_open = (seconds(f, arguments) for f in (static, opened))
    best = [math.inf, math.inf]
    end = time.perf_counter() + duration
    while True:
        for i, f in enumerate((static, opened)):
            best[i] = min(best[i], *[seconds(f, arguments) for _ in range(5)])
        if time.perf_counter() > end:
            break
    extra = []
    for change in range(1, sizes + 1):
        first, second = (seconds(opened, program.arguments(change)) for _ in range(2))
        extra.append(first - second)
    return Row(first_static, first_open, best[0], best[1], statistics.median(extra))


HEADER: Final = (
    f"| {'row':<24} | first, static ms | first, open ms | static us | open us | ratio | new size us |\n"
    f"| {':':-<24} | ---------------: | -------------: | --------: | ------: | ----: | ----------: |"
)


def line(name: str, row: Row) -> str:
    """A row of the Markdown table."""
    first = f"{row.first_static * 1e3:>16.0f} | {row.first_open * 1e3:>14.0f}"
    later = f"{row.static * 1e6:>9,.1f} | {row.open * 1e6:>7,.1f} | {row.open / row.static:>5.2f}"
    return f"| {name:<24} | {first} | {later} | {row.new_size * 1e6:>11.1f} |"


def main() -> None:
    parser = command_line("dynamic_sizes", __doc__)
    parser.add_argument("--rows", default="", help="rows whose name contains one of these words, by commas")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="for the later calls of a row (default: 2)"
    )
    parser.add_argument("--sizes", type=int, default=9, help="new sizes (default: 9)")
    options = parser.parse_args()
    rows = (
        (name, measure(program, options.seconds, options.sizes))
        for name, program in PROGRAMS.items()
        if contains_word(name, options.rows)
    )
    print_table(HEADER, rows, line, options.json)


if __name__ == "__main__":
    main()
