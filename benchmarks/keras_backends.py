"""Compare dualflow with the other installed backends of Keras on training and inference.

    python -m benchmarks.keras_backends                       # every backend, every model: some minutes
    python -m benchmarks.keras_backends --models mlp,lstm --backends dualflow,torch
    python -m benchmarks.keras_backends --json figures.json

Each backend trains each model in a process of its own; the backends are interleaved, and the fastest of the
rounds counts. "first epoch" is the time from before ``import keras`` to the end of the first epoch of
``fit``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from benchmarks.processes import figures_of
from benchmarks.tables import command_line, write_json

BACKENDS: Final = ("dualflow", "tensorflow", "torch", "jax")
FIGURES: Final = {
    "first_epoch": "first epoch, s",
    "step": "step of fit, ms",
    "predict": "predict one, ms",
    "import_keras": "import keras, s",
}


class Problem(NamedTuple):
    """A model, the shape of its data, and the size of its batches."""

    build: Callable[[Any], Any]
    inputs: tuple[int, ...]
    classes: int
    examples: int
    batch: int
    tokens: int | None = None


def mlp(keras: Any) -> Any:
    layers = keras.layers
    return [layers.Dense(256, activation="relu"), layers.Dense(256, activation="relu"), layers.Dense(10)]


def conv_net(keras: Any) -> Any:
    layers = keras.layers
    return [
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(10),
    ]


def lstm(keras: Any) -> Any:
    layers = keras.layers
    return [layers.Embedding(1000, 64), layers.LSTM(64), layers.Dense(2)]


def transformer(keras: Any) -> Any:
    layers = keras.layers

    class Block(layers.Layer):  # type: ignore[misc,name-defined]  # Keras has no types
        def __init__(self) -> None:
            super().__init__()
            self.attention = layers.MultiHeadAttention(4, 16)
            self.wide, self.narrow = layers.Dense(256, activation="gelu"), layers.Dense(64)
            self.first, self.second = layers.LayerNormalization(), layers.LayerNormalization()

        def call(self, x: Any) -> Any:
            x = self.first(x + self.attention(x, x))
            return self.second(x + self.narrow(self.wide(x)))

    return [
        layers.Embedding(1000, 64),
        Block(),
        Block(),
        layers.GlobalAveragePooling1D(),
        layers.Dense(2),
    ]


def resnet(keras: Any) -> Any:
    return [
        keras.applications.ResNet50(weights=None, include_top=False, pooling="avg", input_shape=(64, 64, 3)),
        keras.layers.Dense(10),
    ]


PROBLEMS: Final = {
    "mlp": Problem(mlp, (784,), 10, 8000, 32),
    "conv net": Problem(conv_net, (28, 28, 1), 10, 2000, 32),
    "lstm": Problem(lstm, (40,), 2, 1000, 32, tokens=1000),
    "transformer": Problem(transformer, (40,), 2, 1000, 32, tokens=1000),
    "resnet50": Problem(resnet, (64, 64, 3), 10, 32, 8),
}


def measure(name: str, quick: bool) -> dict[str, float]:
    """The figures of one model, in this process, which has not imported Keras yet."""
    problem, start = PROBLEMS[name], time.perf_counter()
    from keras_dualflow import startup

    startup.watch()  # as the file of `python -m dualflow keras enable` does
    import keras

    imported = time.perf_counter()
    import numpy as np

    random = np.random.default_rng(0)
    examples = 2 * problem.batch if quick else problem.examples
    shape = (examples, *problem.inputs)
    x = (
        random.normal(size=shape).astype(np.float32)
        if problem.tokens is None
        else random.integers(0, problem.tokens, shape).astype(np.int32)
    )
    y = random.integers(0, problem.classes, examples).astype(np.int32)
    model = keras.Sequential(problem.build(keras))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])

    def epoch() -> None:
        model.fit(x, y, batch_size=problem.batch, verbose=0)

    epoch()
    first = time.perf_counter() - start
    rounds = 1 if quick else 3
    steps = -(-examples // problem.batch)
    model.predict(x[:1], verbose=0)
    return {
        "import_keras": imported - start,
        "first_epoch": first,
        "step": min(timed(epoch) for _ in range(rounds)) / steps * 1e3,
        "predict": min(timed(lambda: model.predict(x[:1], verbose=0)) for _ in range(20 * rounds)) * 1e3,
    }


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def in_process(backend: str, name: str, quick: bool) -> dict[str, float]:
    """The figures of one model on one backend, in a new process."""
    environment = {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    arguments = ["--measure", name, *["--quick"] * quick]
    figures: dict[str, float] = figures_of("keras_backends", arguments, environment)
    return figures


def table(rows: dict[str, dict[str, dict[str, float]]], backends: list[str]) -> str:
    """The text of a table with a line for each model and figure, and a column for each backend."""
    lines = [f"{'':30}" + "".join(f"{backend:>12}" for backend in backends)]
    for name, row in rows.items():
        for key, title in FIGURES.items():
            figures = "".join(f"{row[backend][key]:12.3f}" for backend in backends)
            lines.append(f"{name + ': ' + title:30}{figures}")
    return "\n".join(lines)


def main() -> None:
    parser = command_line("keras_backends", __doc__)
    parser.add_argument(
        "--backends", default=",".join(BACKENDS), help="by commas; those installed by default"
    )
    parser.add_argument("--models", default=",".join(PROBLEMS), help=f"of {', '.join(PROBLEMS)}, by commas")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each figure (default: 3)")
    parser.add_argument("--quick", action="store_true", help="two batches and one round: does it run at all?")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.quick)))
        return
    backends = [backend for backend in options.backends.split(",") if find_spec(backend)]  # those installed
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for name in options.models.split(","):
        runs = [
            {backend: in_process(backend, name, options.quick) for backend in backends}
            for _ in range(1 if options.quick else options.rounds)
        ]
        rows[name] = {
            backend: {key: min(run[backend][key] for run in runs) for key in FIGURES} for backend in backends
        }
        print(table({name: rows[name]}, backends), flush=True)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
