"""Train a classifier of handwritten digits twice: eagerly, and as a compiled graph.

Both trainings start from the same weights and use the same batches; the only difference is ``df.function``
around the training step. The table at the end compares them: the same losses in less time per step, after the
time for tracing and compiling.

    python examples/train_digits.py --epochs 25 --out digits.png

With ``--checkpoints FOLDER`` each epoch ends with a checkpoint: the weights, the place in the data, and the
losses so far. A training that was stopped in any way continues from there, with bitwise equal losses.

With ``--summaries FOLDER`` TensorBoard shows the losses: ``tensorboard --logdir FOLDER``.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dualflow as df

WIDTHS = (64, 128, 64, 10)
BATCH = 32
LEARNING_RATE = 0.2
SEED = 0

ACCURACY = 0.96
AGREEMENT = 1e-4

Step = Callable[[df.Tensor, df.Tensor], df.Tensor]


class Classifier(df.Module):
    """A multilayer perceptron: images in, one logit for each digit out."""

    def __init__(self, widths: tuple[int, ...], seed: int) -> None:
        super().__init__(name="classifier")
        random = np.random.default_rng(seed)
        shapes = list(itertools.pairwise(widths))
        starts = [random.normal(0, math.sqrt(2 / inputs), (inputs, outputs)) for inputs, outputs in shapes]
        self.weights = [df.Variable(start, dtype=df.float32) for start in starts]
        self.biases = [df.Variable(df.zeros([outputs])) for _, outputs in shapes]

    def __call__(self, images: df.Tensor) -> df.Tensor:
        *hidden, last = zip(self.weights, self.biases, strict=True)
        x = images
        for weight, bias in hidden:
            x = df.tanh(x @ weight + bias)
        return x @ last[0] + last[1]


def training_step(model: Classifier) -> Step:
    """One step of gradient descent on ``model``, as a plain Python function that returns the loss."""
    variables = model.trainable_variables

    def step(images: df.Tensor, digits: df.Tensor) -> df.Tensor:
        with df.GradientTape() as tape:
            losses = df.nn.sparse_softmax_cross_entropy_with_logits(labels=digits, logits=model(images))
            loss = df.reduce_mean(losses)
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(LEARNING_RATE * gradient)
        return loss

    return step


def accuracy(model: Classifier, images: df.Tensor, digits: df.Tensor) -> float:
    """The fraction of ``images`` whose largest logit is that of their digit."""
    right = df.equal(df.argmax(model(images), axis=-1), digits)
    return float(df.reduce_mean(df.cast(right, df.float32)))


@dataclass
class Run:
    """The measurements of one training; times in seconds.

    A checkpoint stores the result of ``get_state``, and restores it with ``set_state``.
    """

    name: str
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    accuracy: float = 0.0

    def get_state(self) -> dict[str, Any]:
        return {"losses": self.losses, "seconds": self.seconds}

    def set_state(self, state: dict[str, Any]) -> None:
        self.losses, self.seconds = state["losses"], state["seconds"]

    @property
    def per_step(self) -> float:
        """The median of all steps but the first, which traces and compiles."""
        return float(np.median(self.seconds[1:]))

    @property
    def start_up(self) -> float:
        """The additional time of the first step."""
        return max(self.seconds[0] - self.per_step, 0.0)


def train(
    run: Run, step: Step, data: df.data.Dataset, model: Classifier, epochs: int, folder: Path | None
) -> None:
    """Run and time a step for each batch; continue from the last checkpoint in ``folder``."""
    steps, batches = int(data.cardinality()), iter(data.repeat())
    checkpoint = df.train.Checkpoint(model=model, batches=batches, run=run)
    manager = folder and df.train.CheckpointManager(checkpoint, folder / run.name, max_to_keep=2)
    if manager and manager.restore_or_initialize():
        print(f"{run.name}  goes on after epoch {len(run.losses) // steps}, from {manager.latest_checkpoint}")
    for number in range(len(run.losses) // steps + 1, epochs + 1):
        for images, digits in itertools.islice(batches, steps):
            start = time.perf_counter()
            loss = float(step(images, digits))
            run.seconds.append(time.perf_counter() - start)
            run.losses.append(loss)
            df.summary.scalar("loss", loss, step=len(run.losses))
        mean = np.mean(run.losses[-steps:])
        line = f"{run.name}  epoch {number:3}/{epochs}  loss {mean:.4f}  {sum(run.seconds):6.2f} s"
        report(line, last=number == epochs)
        if manager:
            manager.save()


def writer_of(run: Run, folder: Path | None) -> df.summary.SummaryWriter:
    """The summary writer of the losses; it writes nothing without a folder."""
    return df.summary.create_file_writer(folder / run.name) if folder else df.summary.create_noop_writer()


def report(line: str, last: bool) -> None:
    """Print progress: one line that is overwritten on a terminal, plain lines elsewhere."""
    if sys.stdout.isatty():
        print(f"\r{line}", end="\n" if last else "", flush=True)
    else:
        print(line, flush=True)


def load() -> tuple[Callable[[], df.data.Dataset], df.Tensor, df.Tensor]:
    """A function that creates the training data, and the held-out scans with their digits.

    The data are batches of scans, shuffled anew in each pass, in the same orders for each dataset.
    """
    images, digits = load_digits(return_X_y=True)
    train_images, test_images, train_digits, test_digits = train_test_split(
        (images / 16).astype(np.float32), digits, test_size=0.2, stratify=digits, random_state=SEED
    )

    def data() -> df.data.Dataset:
        scans = df.data.Dataset.from_tensor_slices((train_images, train_digits))
        return scans.shuffle(len(train_images), seed=SEED).batch(BATCH, drop_remainder=True)

    return data, df.constant(test_images), df.constant(test_digits)


def differences(eager: Run, graph: Run) -> np.ndarray:
    """The differences of the losses of each step, relative to the eager ones."""
    expected = np.array(eager.losses)
    return np.abs(np.array(graph.losses) - expected) / np.abs(expected)


def break_even(eager: Run, graph: Run) -> int | None:
    """The number of steps after which the graph has taken less time in all; None if it never does."""
    saved = eager.per_step - graph.per_step
    return math.ceil(graph.start_up / saved) if saved > 0 else None


def table(eager: Run, graph: Run) -> str:
    """The figures of both runs side by side."""
    pays = break_even(eager, graph)
    rows = [
        ("", "eager", "graph"),
        ("held-out accuracy", f"{eager.accuracy:.2%}", f"{graph.accuracy:.2%}"),
        ("last loss", f"{eager.losses[-1]:.5f}", f"{graph.losses[-1]:.5f}"),
        ("time per step", f"{eager.per_step * 1e6:.0f} us", f"{graph.per_step * 1e6:.0f} us"),
        ("steps, in all", f"{sum(eager.seconds):.2f} s", f"{sum(graph.seconds):.2f} s"),
        ("trace + compile", "-", f"{graph.start_up * 1e3:.0f} ms"),
        ("eager time / graph time", "", f"{eager.per_step / graph.per_step:.2f}"),
        ("graph pays after", "", "never" if pays is None else f"{pays} steps"),
    ]
    lines = [f"{name:<24}{left:>12}{right:>12}" for name, left, right in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def draw(eager: Run, graph: Run, steps_per_epoch: int, path: Path) -> None:
    """Plot both loss curves, their difference, and the time of each training."""
    steps = np.arange(1, len(eager.losses) + 1)
    styles = {"eager": ("tab:blue", "-", 4.0, 0.45), "graph": ("tab:red", (0, (4, 3)), 1.5, 1.0)}
    figure, axes = plt.subplot_mosaic(
        [["loss", "time"], ["apart", "time"]], figsize=(11, 5.5), height_ratios=(3, 1), layout="constrained"
    )
    axes["loss"].plot(steps, eager.losses, color="0.8", linewidth=0.6, label="each step (eager)")
    window = min(steps_per_epoch, len(steps))
    for run in (eager, graph):
        color, dashes, width, alpha = styles[run.name]
        style = {"color": color, "linestyle": dashes, "linewidth": width, "alpha": alpha}
        smooth = np.convolve(run.losses, np.full(window, 1 / window), mode="valid")
        label = f"{run.name}, mean of an epoch"
        axes["loss"].plot(steps[window // 2 :][: len(smooth)], smooth, label=label, **style)
        label = f"{run.name}, {run.per_step * 1e6:.0f} us a step"
        axes["time"].plot(steps, np.cumsum(run.seconds), label=label, **style)
    axes["loss"].set(yscale="log", ylabel="training loss", title="The same losses ...")
    axes["loss"].tick_params(labelbottom=False)
    axes["apart"].plot(steps, differences(eager, graph), "o", color="0.35", markersize=1.5, label="each step")
    axes["apart"].axhline(AGREEMENT, color="0.35", linestyle=":", label="promised")
    axes["apart"].set(yscale="log", xlabel="step", ylabel="relative\ndifference", ylim=(1e-8, 3e-2))
    axes["time"].set(
        xlabel="step", ylabel="seconds so far", title="... in less time, once compiled", ylim=(0, None)
    )
    for panel in axes.values():
        panel.set_xlim(0, len(steps))
        panel.grid(alpha=0.25)
        panel.legend(frameon=False, ncols=2 if panel is axes["apart"] else 1)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=25, help="passes over the training scans (default: 25)")
    parser.add_argument(
        "--out", type=Path, default=Path("digits.png"), help="the picture (default: digits.png)"
    )
    parser.add_argument("--checkpoints", type=Path, help="where to save each epoch, and to go on from")
    parser.add_argument("--summaries", type=Path, help="where to write the losses for TensorBoard")
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    data, test_images, test_digits = load()
    steps = int(data().cardinality())
    layers = "-".join(map(str, WIDTHS))
    print(f"{steps} batches of {BATCH} digits to train on, {len(test_digits)} held out; MLP {layers}")

    runs = []
    for name, compiled in (("eager", lambda step: step), ("graph", df.function)):
        model, run = Classifier(WIDTHS, SEED), Run(name)
        with writer_of(run, options.summaries).as_default():
            train(run, compiled(training_step(model)), data(), model, options.epochs, options.checkpoints)
        run.accuracy = accuracy(model, test_images, test_digits)
        runs.append(run)
    eager, graph = runs

    apart = differences(eager, graph).max()
    draw(eager, graph, steps, options.out)
    print(f"\n{table(eager, graph)}\n")
    print(f"losses agree within {apart:.1e} relative at each of {len(eager.losses)} steps")
    print(f"saved both loss curves to {options.out.resolve()}")

    broken = []
    if min(eager.accuracy, graph.accuracy) < ACCURACY:
        broken.append(f"the held-out accuracy is below {ACCURACY:.0%}; train for more epochs")
    if not apart <= AGREEMENT:
        broken.append(f"the losses are more than {AGREEMENT:.0e} apart")
    for promise in broken:
        print(f"promise broken: {promise}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
