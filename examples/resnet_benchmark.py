"""Images per second of ResNet50, in training and inference: eager, as a graph, on Keras's other backends.

    python examples/resnet_benchmark.py
    python examples/resnet_benchmark.py --size 64 --batch 16 --backends dualflow,jax

The same model runs on each backend of Keras that is installed, each in a process of its own. Keras compiles
on dualflow, TensorFlow and jax; torch runs op by op by default. The first step of a mode traces and compiles,
and is shown separately; of the steps after it the fastest counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import dualflow as df

MODES = {
    "dualflow": ("eager", "graph"),
    "tensorflow": ("eager", "graph"),
    "torch": ("eager",),
    "jax": ("graph",),
}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def resnet(keras: Any, blocks: list[int], size: int) -> Any:
    """A residual network with ``blocks`` bottleneck blocks in the stages; 3, 4, 6, 3 is ResNet50.

    After He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (2015).
    """
    layers = keras.layers

    def convolution(x: Any, filters: int, width: int, stride: int = 1) -> Any:
        return layers.BatchNormalization()(layers.Conv2D(filters, width, stride, padding="same")(x))

    def bottleneck(x: Any, filters: int, stride: int, first: bool) -> Any:
        shortcut = convolution(x, 4 * filters, 1, stride) if first else x
        x = layers.ReLU()(convolution(x, filters, 1, stride))
        x = layers.ReLU()(convolution(x, filters, 3))
        return layers.ReLU()(layers.Add()([convolution(x, 4 * filters, 1), shortcut]))

    images = keras.Input((size, size, 3))
    x = layers.ReLU()(convolution(images, 64, 7, stride=2))
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    for stage, count in enumerate(blocks):
        for block in range(count):
            first = block == 0
            x = bottleneck(x, 64 * 2**stage, stride=2 if first and stage else 1, first=first)
    return keras.Model(images, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


def measure(backend: str, options: argparse.Namespace) -> list[dict[str, float]]:
    """The figures of each mode of ``backend``, in this process, which has not imported Keras yet."""
    keras = df.keras if backend == "dualflow" else import_module("keras")
    random = np.random.default_rng(0)
    images = random.random((options.batch, options.size, options.size, 3), dtype=np.float32)
    labels = random.integers(0, 1000, options.batch).astype(np.int32)
    figures = []
    for mode in MODES[backend]:
        keras.utils.set_random_seed(0)
        model = resnet(keras, options.blocks, options.size)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss, run_eagerly=mode == "eager")
        inference = times(lambda model=model: model.predict_on_batch(images), options.steps)
        training = times(lambda model=model: model.train_on_batch(images, labels), options.steps)
        figures.append(
            {
                "parameters": model.count_params(),
                "training": options.batch / min(training[1:]),
                "inference": options.batch / min(inference[1:]),
                "first training": training[0],
                "first inference": inference[0],
            }
        )
    return figures


def times(step: Callable[[], Any], count: int) -> list[float]:
    """The seconds of a first step and ``count`` others."""
    seconds = []
    for _ in range(1 + count):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds


def in_a_process(backend: str) -> list[dict[str, float]]:
    """The result of :func:`measure` in a new process, with the options of this one."""
    command = [sys.executable, __file__, *sys.argv[1:], "--measure", backend]
    environment = os.environ | QUIET | {"KERAS_BACKEND": backend}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{backend} failed:\n{done.stderr[-2000:]}")
    figures: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return figures


def print_rows(backend: str) -> None:
    """Measure ``backend``, and print a row for each of its modes."""
    if not find_spec(backend):
        print(f"{backend:<18}    not installed")
        return
    for mode, figures in zip(MODES[backend], in_a_process(backend), strict=True):
        cells = [(figures[what], figures[f"first {what}"]) for what in ("training", "inference")]
        row = "".join(f"{speed:13.1f}{first:7.1f} s" for speed, first in cells)
        print(f"{backend + ' ' + mode:<18}{row}{figures['parameters']:14,}", flush=True)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=8, help="images in a step (default: 8)")
    parser.add_argument("--size", type=int, default=224, help="their height and width (default: 224)")
    parser.add_argument("--steps", type=int, default=5, help="steps after the first (default: 5)")
    parser.add_argument(
        "--blocks", type=numbers, default=[3, 4, 6, 3], help="bottlenecks in each stage (default: 3,4,6,3)"
    )
    parser.add_argument(
        "--backends", default=",".join(MODES), help=f"some of {','.join(MODES)} (default: those installed)"
    )
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if min(options.batch, options.size, options.steps, *options.blocks) < 1:
        parser.error("--batch, --size, --steps and --blocks must be at least 1")
    if unknown := set(options.backends.split(",")) - set(MODES):
        parser.error(f"--backends has {', '.join(sorted(unknown))}, which is none of {', '.join(MODES)}")
    if options.measure:
        print(json.dumps(measure(options.measure, options)))
        return 0

    if find_spec("keras") is None:
        raise SystemExit('Keras is not installed: pip install "dualflow[keras]"')
    print(f"blocks {options.blocks}, batches of {options.batch} images of {options.size} x {options.size}\n")
    print(f"{'':<18}{'training':>22}{'inference':>22}{'parameters':>14}")
    print(f"{'':<18}{'images/s   first':>22}{'images/s   first':>22}")
    try:
        for backend in options.backends.split(","):
            print_rows(backend)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
