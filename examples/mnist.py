"""Train a convolutional network on handwritten digits in three ways.

    eager  a training loop with a GradientTape, op by op
    graph  the same loop, its step a df.function
    fit    Keras's model.fit

All start from the same weights, use the same batches and drop the same units, so that their losses agree. The
table and the picture show the times.

    python examples/mnist.py                                      # scikit-learn's digits, 8 x 8
    python examples/mnist.py --data mnist.npz --ways graph,fit    # MNIST, in the file that Keras downloads

With ``--checkpoints FOLDER`` each epoch ends with a checkpoint of the weights, the optimizer, the dropout's
random state and the measurements. A training that was stopped continues from there, with the same losses.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dualflow as df

keras = df.keras

WAYS = ("eager", "graph", "fit")
ARRAYS = ("x_train", "y_train", "x_test", "y_test")
BATCH = 32
SEED = 0

Note = Callable[[float, float, float], None]


class Digits(NamedTuple):
    """Images of shape (count, height, width, 1) with values in [0, 1], and the digit that each shows."""

    images: np.ndarray
    digits: np.ndarray
    test_images: np.ndarray
    test_digits: np.ndarray

    @property
    def steps(self) -> int:
        """The number of batches in an epoch."""
        return len(self.images) // BATCH

    def training(self) -> df.data.Dataset:
        """Endless batches, shuffled anew in each epoch, in the same orders for each dataset."""
        rows = df.data.Dataset.from_tensor_slices((self.images, self.digits))
        return rows.shuffle(len(self.images), seed=SEED).batch(BATCH, drop_remainder=True).repeat()

    def held_out(self) -> df.data.Dataset:
        return df.data.Dataset.from_tensor_slices((self.test_images, self.test_digits)).batch(500)


def load(path: Path | None, examples: int | None) -> Digits:
    """The digits in ``path``, or those of scikit-learn; no more than ``examples`` of them to train on."""
    if path is None:
        scans, digits = load_digits(return_X_y=True)
        scans = scans.reshape(-1, 8, 8) / 16
        images, test_images, digits, test_digits = train_test_split(
            scans, digits, test_size=0.2, stratify=digits, random_state=SEED
        )
    else:
        try:
            with np.load(path) as file:
                images, digits, test_images, test_digits = (file[name] for name in ARRAYS)
        except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            expected = f"an mnist.npz, with the arrays {', '.join(ARRAYS)}"
            raise SystemExit(f"--data {path} is not {expected}: {error}") from None
        images, test_images = images / 255, test_images / 255
    if not BATCH <= (count := len(images) if examples is None else examples) <= len(images):
        raise SystemExit(f"--examples must lie between {BATCH}, a batch, and {len(images)}, all there are")
    with_channel = [x[..., None].astype(np.float32) for x in (images[:count], test_images)]
    return Digits(with_channel[0], digits[:count], with_channel[1], test_digits)


def network(shape: tuple[int, ...]) -> Any:
    """A small convolutional network with one logit for each digit; the same weights each time."""
    keras.utils.set_random_seed(SEED)
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input(shape),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.25),
            layers.Dense(10),
        ]
    )


def loss_function() -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def by_own_loop(
    compiled: Callable[..., Any], model: Any, optimizer: Any, data: Digits, epochs: range, note: Note
) -> None:
    """Train with a custom loop; ``compiled`` is ``df.function``, or returns the step unchanged."""
    loss_of, mean_loss = loss_function(), keras.metrics.Mean()
    accuracy = keras.metrics.SparseCategoricalAccuracy()

    @compiled
    def train_step(images, digits):
        with df.GradientTape() as tape:
            loss = loss_of(digits, model(images, training=True))
        weights = model.trainable_weights
        optimizer.apply(tape.gradient(loss, weights), weights)
        mean_loss.update_state(loss)

    @compiled
    def test_step(images, digits):
        accuracy.update_state(digits, model(images, training=False))

    batches = iter(data.training().skip(epochs.start * data.steps))
    for _ in epochs:
        mean_loss.reset_state()
        start = time.perf_counter()
        for images, digits in itertools.islice(batches, data.steps):
            train_step(images, digits)
        seconds = time.perf_counter() - start
        accuracy.reset_state()
        for images, digits in data.held_out():
            test_step(images, digits)
        note(float(mean_loss.result()), float(accuracy.result()), seconds)


class Notes(keras.callbacks.Callback):
    """Records each epoch of ``fit``; the time is that of training, without the evaluation after it."""

    def __init__(self, note: Note) -> None:
        super().__init__()
        self.note = note

    def on_epoch_begin(self, epoch, logs=None):
        self.begun = time.perf_counter()

    def on_test_begin(self, logs=None):
        self.seconds = time.perf_counter() - self.begun

    def on_epoch_end(self, epoch, logs=None):
        self.note(logs["loss"], logs["val_accuracy"], self.seconds)


def by_fit(model: Any, optimizer: Any, data: Digits, epochs: range, note: Note) -> None:
    """Train with Keras's loop, whose step is compiled too."""
    model.compile(optimizer, loss_function(), metrics=["accuracy"])
    model.fit(
        data.training().skip(epochs.start * data.steps),
        steps_per_epoch=data.steps,
        initial_epoch=epochs.start,
        epochs=epochs.stop,
        validation_data=data.held_out(),
        callbacks=[Notes(note)],
        verbose=0,
    )


@dataclass
class Run:
    """The measurements of each epoch of one training; times in seconds.

    A checkpoint stores the result of ``get_state``, and restores it with ``set_state``.
    """

    name: str
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def get_state(self) -> dict[str, Any]:
        return {"losses": self.losses, "accuracies": self.accuracies, "seconds": self.seconds}

    def set_state(self, state: dict[str, Any]) -> None:
        self.losses, self.accuracies, self.seconds = state["losses"], state["accuracies"], state["seconds"]

    @property
    def epoch(self) -> float:
        """The median of all epochs but the first, in which the graph is traced and compiled."""
        return float(np.median(self.seconds[1:] or self.seconds))


def train(name: str, data: Digits, epochs: int, folder: Path | None) -> Run:
    """Train a new network in one of the ways; continue from the last checkpoint in ``folder``."""
    run, model, optimizer = Run(name), network(data.images.shape[1:]), keras.optimizers.Adam(3e-3)
    checkpoint = df.train.Checkpoint(run=run, model=model, optimizer=optimizer)
    manager = folder and df.train.CheckpointManager(checkpoint, folder / name, max_to_keep=2)
    if manager and manager.restore_or_initialize():
        print(f"{name}  goes on after epoch {len(run.losses)}, from {manager.latest_checkpoint}")

    def note(loss: float, accuracy: float, seconds: float) -> None:
        for values, value in ((run.losses, loss), (run.accuracies, accuracy), (run.seconds, seconds)):
            values.append(float(value))
        measured = f"loss {loss:.4f}  accuracy {accuracy:.2%}  {seconds:6.2f} s"
        print(f"{name:5}  epoch {len(run.losses):3}/{epochs}  {measured}", flush=True)
        if manager:
            manager.save()

    left = range(len(run.losses), epochs)
    if name == "fit":
        by_fit(model, optimizer, data, left, note)
    else:
        by_own_loop(df.function if name == "graph" else lambda step: step, model, optimizer, data, left, note)
    return run


def table(runs: list[Run], steps: int) -> str:
    """The figures of all runs side by side."""
    per_step = [run.epoch / steps * 1e3 for run in runs]
    rows = {
        "": [run.name for run in runs],
        "held-out accuracy": [f"{run.accuracies[-1]:.2%}" for run in runs],
        "last loss": [f"{run.losses[-1]:.5f}" for run in runs],
        "time per step": [f"{each:.2f} ms" for each in per_step],
        "first epoch": [f"{run.seconds[0]:.2f} s" for run in runs],
        "all epochs": [f"{sum(run.seconds):.2f} s" for run in runs],
        f"{runs[0].name} time / time": [f"{per_step[0] / each:.2f}" for each in per_step],
    }
    head, *lines = (f"{name:<20}" + "".join(f"{value:>12}" for value in row) for name, row in rows.items())
    return "\n".join([head, "-" * len(head), *lines])


def draw(runs: list[Run], path: Path) -> None:
    """The loss, the accuracy and the time, epoch by epoch."""
    styles = {"eager": ("tab:blue", "-", 5), "graph": ("tab:orange", "-", 2.5), "fit": ("black", ":", 1.5)}
    figure, axes = plt.subplot_mosaic(
        [["loss", "time"], ["accuracy", "time"]], figsize=(11, 5.5), layout="constrained"
    )
    for run in runs:
        color, dashes, width = styles[run.name]
        style = {"color": color, "linestyle": dashes, "linewidth": width, "label": run.name, "marker": "."}
        epochs = np.arange(1, len(run.losses) + 1)
        axes["loss"].plot(epochs, run.losses, **style)
        axes["accuracy"].plot(epochs, np.multiply(run.accuracies, 100), **style)
        axes["time"].plot([0, *epochs], [0, *np.cumsum(run.seconds)], **style)
    axes["loss"].set(yscale="log", ylabel="training loss", title="The same learning ...")
    axes["accuracy"].set(xlabel="epoch", ylabel="held-out accuracy, %")
    axes["time"].set(
        xlabel="epoch", ylabel="seconds of training so far", title="... in less time, once compiled"
    )
    for panel in axes.values():
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.grid(alpha=0.25)
        panel.legend(frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FILE", help="MNIST's mnist.npz")
    parser.add_argument("--examples", type=int, metavar="COUNT", help="train on that many (default: all)")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the digits (default: 10)")
    parser.add_argument("--ways", default=",".join(WAYS), help=f"some of {','.join(WAYS)} (default: all)")
    parser.add_argument(
        "--out", type=Path, default=Path("mnist.png"), help="the picture (default: mnist.png)"
    )
    parser.add_argument("--checkpoints", type=Path, help="where to save each epoch, and to go on from")
    options = parser.parse_args()
    ways = options.ways.split(",")
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")
    if unknown := set(ways) - set(WAYS):
        parser.error(f"--ways has {', '.join(sorted(unknown))}, which is none of {', '.join(WAYS)}")

    if not options.out.resolve().parent.is_dir():
        parser.error(f"--out is in a folder that does not exist: {options.out.resolve().parent}")

    data = load(options.data, options.examples)
    size = " x ".join(map(str, data.images.shape[1:3]))
    batches = f"{data.steps} batch{'es' if data.steps > 1 else ''} of {BATCH}"
    print(f"{batches} digits, {size}, to train on; {len(data.test_digits)} held out")
    try:
        runs = [train(way, data, options.epochs, options.checkpoints) for way in ways]
    except KeyboardInterrupt:
        remedy = (
            f"the same command goes on from {options.checkpoints}"
            if options.checkpoints
            else "nothing is kept"
        )
        print(f"stopped: {remedy}", file=sys.stderr)
        return 130

    draw(runs, options.out)
    print(f"\n{table(runs, data.steps)}\n")
    if len(runs) > 1:
        first = [run.losses[0] for run in runs]
        print(f"losses of the first epoch agree within {max(first) / min(first) - 1:.1e} relative")
    print(f"saved the curves to {options.out.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
