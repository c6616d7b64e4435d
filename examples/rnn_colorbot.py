"""Guess a colour from its name: an LSTM reads the letters, and returns the amounts of red, green and blue.

Names have different lengths: ``padded_batch`` pads them with zeros, which the layers mask and skip. The
network is trained twice, by the same loop: eagerly, and with its step as a ``df.function``.

    python examples/rnn_colorbot.py --words "pale lime,deep sea"

The names and colours to learn from are those of XKCD's survey, as matplotlib has them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.colors import XKCD_COLORS, to_rgb

import dualflow as df

keras = df.keras

BATCH = 32
LETTERS = 128  # ASCII; 0 stands for none
SEED = 0


def surveyed(most: int) -> tuple[list[str], np.ndarray]:
    """The names of at most ``most`` letters, in a random order, and their colours.

    The colours have the shape (count, 3) and values in [0, 1].
    """
    every = {name.removeprefix("xkcd:"): to_rgb(code) for name, code in XKCD_COLORS.items()}
    colours = {name: colour for name, colour in every.items() if len(name) <= most}
    order = np.random.default_rng(SEED).permutation(len(colours))
    names = list(colours)
    return [names[i] for i in order], np.array(list(colours.values()), np.float32)[order]


def letters(name: Any) -> Any:
    """The letters of one name, as the numbers of their characters."""
    return df.cast(df.io.decode_raw(name, df.uint8), df.int32)


def dataset(names: list[str], colours: np.ndarray, longest: int) -> df.data.Dataset:
    """Batches of letters and colours; all names are padded to one length, so that one trace is enough."""
    rows = df.data.Dataset.from_tensor_slices((names, colours))
    rows = rows.map(lambda name, colour: (letters(name), colour)).cache()
    return rows.shuffle(len(names), seed=SEED).padded_batch(BATCH, ([longest], [3]), drop_remainder=True)


def network() -> Any:
    """Letters in, three numbers in [0, 1] out; the same weights each time."""
    keras.utils.set_random_seed(SEED)
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Embedding(LETTERS, 32, mask_zero=True),
            layers.LSTM(64),
            layers.Dense(64, activation="relu"),
            layers.Dense(3, activation="sigmoid"),
        ]
    )


def train(
    compiled: Callable[..., Any], data: df.data.Dataset, epochs: int, name: str
) -> tuple[Any, list[float]]:
    """Train a new network; return it, and the time of each step in seconds."""
    model, optimizer, seconds = network(), keras.optimizers.Adam(3e-3), []

    @compiled
    def step(words, colours):
        with df.GradientTape() as tape:
            loss = df.reduce_mean((model(words, training=True) - colours) ** 2)
        weights = model.trainable_weights
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    for epoch in range(1, epochs + 1):
        losses = []
        for words, colours in data:
            start = time.perf_counter()
            losses.append(float(step(words, colours)))
            seconds.append(time.perf_counter() - start)
        if epoch in (1, epochs) or epoch % 10 == 0:
            print(f"{name}  epoch {epoch:3}/{epochs}  loss {np.mean(losses):.5f}", flush=True)
    return model, seconds


def guess(model: Any, words: list[str], longest: int) -> np.ndarray:
    """The colours that ``model`` predicts for ``words``."""
    rows = df.data.Dataset.from_tensor_slices(words).map(letters).padded_batch(len(words), [longest])
    return model(next(iter(rows)), training=False).numpy()


def shown(colour: np.ndarray) -> str:
    """A colour's code, with a patch of the colour on a terminal."""
    red, green, blue = (round(255 * float(part)) for part in colour)
    code = f"#{red:02x}{green:02x}{blue:02x}"
    return f"\033[48;2;{red};{green};{blue}m      \033[0m {code}" if sys.stdout.isatty() else code


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=30, help="passes over the names (default: 30)")
    parser.add_argument(
        "--words", default="light green,dark red,pale lime,deep sea", help="names to guess the colours of"
    )
    parser.add_argument(
        "--letters", type=int, default=26, help="learn names of at most that many letters (default: 26, all)"
    )
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")
    if options.letters < 4:
        parser.error("--letters must be at least 4: fewer than a batch of names have at most 3")
    names, colours = surveyed(options.letters)
    words, longest = options.words.split(","), max(map(len, names))
    if not all(word.isascii() and 0 < len(word) <= longest for word in words):
        parser.error(f"--words takes names of 1 to {longest} ASCII characters, with commas between them")

    held_out = len(names) // 10
    print(f"{len(names) - held_out} names to learn, {held_out} held out, the longest has {longest} letters")
    guesses, figures = {}, {}
    for name, compiled in (("eager", lambda step: step), ("graph", df.function)):
        data = dataset(names[held_out:], colours[held_out:], longest)  # anew, for the same orders
        model, seconds = train(compiled, data, options.epochs, name)
        error = np.abs(guess(model, names[:held_out], longest) - colours[:held_out]).mean()
        figures[name] = f"held-out error {error:.4f}  {np.median(seconds[1:]) * 1e3:.2f} ms a step"
        guesses[name] = guess(model, words, longest)

    average = np.abs(colours[held_out:].mean(axis=0) - colours[:held_out]).mean()
    print(f"\nmean error of a guess, where the average colour has {average:.4f}:")
    for name, figure in figures.items():
        print(f"{name}  {figure}")
    print("\nguesses:")
    for word, eager, graph in zip(words, guesses["eager"], guesses["graph"], strict=True):
        print(f"{word:<{longest}}  eager {shown(eager)}  graph {shown(graph)}")


if __name__ == "__main__":
    main()
