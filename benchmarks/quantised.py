"""What quantization to 8 bits gains: layers in float32, compared with the same ones by products of integers.

    python -m benchmarks.quantised                       # every row: half a minute
    python -m benchmarks.quantised --rows dense --json figures.json

Columns: microseconds of the fastest call of each, their ratio, and the largest error relative to the largest
result. Both functions are frozen, and are called alternately in one process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import dualflow as df
from benchmarks.peers import fastest
from benchmarks.tables import command_line, contains_word, print_table


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer: a function of what it reads and of its weights, and the shapes of both."""

    function: Callable[[Any, Any], Any]
    reads: tuple[int, ...]
    weights: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Row:
    """Seconds of the fastest call of each function, and the largest relative error of integers."""

    float32: float
    int8: float
    error: float


def dense(x: Any, w: Any) -> Any:
    return df.nn.relu(x @ w)


def convolution(x: Any, w: Any) -> Any:
    return df.nn.relu(df.nn.conv2d(x, w, padding="SAME"))


LAYERS: Final = {
    "dense, 1x512, 512": Layer(dense, (1, 512), (512, 512)),
    "dense, 1x4096, 4096": Layer(dense, (1, 4096), (4096, 4096)),
    "dense, 32x512, 512": Layer(dense, (32, 512), (512, 512)),
    "dense, 256x1024, 1024": Layer(dense, (256, 1024), (1024, 1024)),
    "convolution, 8x32x32x64, 64": Layer(convolution, (8, 32, 32, 64), (3, 3, 64, 64)),
    "convolution, 8x16x16x128, 128": Layer(convolution, (8, 16, 16, 128), (3, 3, 128, 128)),
}


def measure(layer: Layer, seconds: float) -> Row:
    """The figures of a layer, from about ``seconds`` of calls."""
    rng = np.random.default_rng(0)
    x = df.constant(rng.random(layer.reads, np.float32))
    weights = df.constant(rng.standard_normal(layer.weights).astype(np.float32))

    def function(x: Any) -> Any:
        return layer.function(x, weights)

    frozen = df.rewrite.freeze(function)
    quantized = df.quantization.int8(function, df.quantization.calibrate(function, [x]))
    expected = frozen(x).numpy()
    error = float(np.abs(quantized(x).numpy() - expected).max() / np.abs(expected).max())
    float32, int8 = fastest([lambda: frozen(x), lambda: quantized(x)], seconds)
    return Row(float32, int8, error)


HEADER: Final = (
    f"| {'layer':<29} | float32 us | int8 us | ratio | error |\n"
    f"| {':':-<29} | ---------: | ------: | ----: | ----: |"
)


def line(name: str, row: Row) -> str:
    """A row of the Markdown table."""
    times = f"{row.float32 * 1e6:>10,.0f} | {row.int8 * 1e6:>7,.0f} | {row.int8 / row.float32:>5.2f}"
    return f"| {name:<29} | {times} | {row.error:>5.3f} |"


def main() -> None:
    parser = command_line("quantised", __doc__)
    parser.add_argument("--rows", default="", help="rows whose name contains one of these words, by commas")
    parser.add_argument("--seconds", type=float, default=3.0, help="for the calls of a row (default: 3)")
    options = parser.parse_args()
    rows = (
        (name, measure(layer, options.seconds))
        for name, layer in LAYERS.items()
        if contains_word(name, options.rows)
    )
    print_table(HEADER, rows, line, options.json)


if __name__ == "__main__":
    main()
