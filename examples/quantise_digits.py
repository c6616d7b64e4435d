"""Train a convolutional network on digits, fold its batch normalisation, and quantize it to 8 bits.

The same held-out digits are classified by the float network, by the network with folded batch normalisation,
and by the one whose second convolution and dense layer are products of 8-bit integers. The table has
accuracy, time and the size of the saved weights of each.

    python examples/quantise_digits.py --epochs 8
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dualflow as df

CHANNELS = (1, 32, 64)
BATCH = 32
LEARNING_RATE = 0.05
MOMENTUM = 0.9
SEED = 0
MOST_LOST = 0.005
LARGEST = 0.3

Network = Callable[[df.Tensor], df.Tensor]


class Convolution(df.Module):
    """A convolution of 3 x 3 with stride 2, batch normalisation and relu."""

    def __init__(self, inputs: int, outputs: int, random: np.random.Generator) -> None:
        super().__init__()
        start = random.normal(0, np.sqrt(2 / (9 * inputs)), (3, 3, inputs, outputs))
        self.filters = df.Variable(start, dtype=df.float32)
        self.scale, self.shift = df.Variable(df.ones([outputs])), df.Variable(df.zeros([outputs]))
        self.mean = df.Variable(df.zeros([outputs]), trainable=False)
        self.variance = df.Variable(df.ones([outputs]), trainable=False)

    def __call__(self, x: df.Tensor, training: bool) -> df.Tensor:
        x = df.nn.conv2d(x, self.filters, strides=2, padding="SAME")
        mean, variance = self.mean, self.variance
        if training:
            mean, variance = df.nn.moments(x, [0, 1, 2])
            for average, new in ((self.mean, mean), (self.variance, variance)):
                average.assign(MOMENTUM * average + (1 - MOMENTUM) * new)
        return df.nn.relu(df.nn.batch_normalization(x, mean, variance, self.shift, self.scale, 1e-3))


class Classifier(df.Module):
    """Two convolutions and a dense layer: images in, one logit for each digit out."""

    def __init__(self, seed: int) -> None:
        super().__init__(name="classifier")
        random = np.random.default_rng(seed)
        self.convolutions = [Convolution(a, b, random) for a, b in itertools.pairwise(CHANNELS)]
        features = 2 * 2 * CHANNELS[-1]
        self.dense = df.Variable(random.normal(0, features**-0.5, (features, 10)), dtype=df.float32)

    def __call__(self, images: df.Tensor, training: bool = False) -> df.Tensor:
        x = df.expand_dims(images, -1)
        for convolution in self.convolutions:
            x = convolution(x, training)
        return df.reshape(x, [-1, 2 * 2 * CHANNELS[-1]]) @ self.dense


def train(model: Classifier, data: df.data.Dataset, epochs: int) -> None:
    """Gradient descent on the mean cross entropy of each batch."""
    variables = model.trainable_variables

    @df.function
    def step(images: df.Tensor, digits: df.Tensor) -> df.Tensor:
        with df.GradientTape() as tape:
            logits = model(images, training=True)
            loss = df.reduce_mean(df.nn.sparse_softmax_cross_entropy_with_logits(digits, logits))
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(LEARNING_RATE * gradient)
        return loss

    for epoch in range(1, epochs + 1):
        losses = [float(step(images, digits)) for images, digits in data]
        print(f"epoch {epoch:2}/{epochs}  loss {np.mean(losses):.4f}")


@dataclass(frozen=True)
class Result:
    """The figures of one network: accuracy, seconds for all held-out digits, bytes of its saved weights."""

    name: str
    accuracy: float
    seconds: float
    nbytes: int

    @classmethod
    def of(cls, name: str, network: Network, images: df.Tensor, digits: np.ndarray) -> Result:
        function = df.function(network, input_signature=[df.TensorSpec([None, 8, 8])])
        right = np.argmax(function(images), axis=-1) == digits
        times = []
        for _ in range(20):
            start = time.perf_counter()
            function(images)
            times.append(time.perf_counter() - start)
        return cls(name, float(np.mean(right)), min(times), saved_bytes(function))


def saved_bytes(function: df.types.experimental.PolymorphicFunction) -> int:
    """The size of the weights of a saved function."""
    module = df.Module()
    module.call = function
    with tempfile.TemporaryDirectory() as folder:
        df.saved_model.save(module, folder)
        return sum(path.stat().st_size for path in Path(folder).rglob("*.safetensors"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    images, digits = load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8) / 16).astype(np.float32)
    parts = train_test_split(images, digits.astype(np.int32), test_size=0.25, random_state=SEED)
    training_images, held_out_images, training_digits, held_out_digits = parts
    data = df.data.Dataset.from_tensor_slices((training_images, training_digits))
    model = Classifier(SEED)
    train(model, data.shuffle(2000, seed=SEED).batch(BATCH, drop_remainder=True), options.epochs)

    calibration = df.quantization.calibrate(model, data.take(256).map(lambda image, digit: image).batch(64))
    print(f"\n{calibration}\n")
    networks: dict[str, Network] = {
        "float32": df.rewrite.freeze(model),
        "folded": df.rewrite.freeze(model, [df.rewrite.fold_batch_norm]),
        "int8": df.quantization.int8(model, calibration),
    }
    held_out = df.constant(held_out_images)
    results = [Result.of(name, network, held_out, held_out_digits) for name, network in networks.items()]
    for result in results:
        print(
            f"{result.name:8} held-out accuracy {100 * result.accuracy:5.1f}%  "
            f"{1e6 * result.seconds:6.0f} us  weights {result.nbytes:6} bytes"
        )
    reference, _, small = results
    if small.accuracy < reference.accuracy - MOST_LOST:
        sys.exit("promise broken: int8 loses more than half a point of accuracy")
    if small.nbytes > LARGEST * reference.nbytes:
        sys.exit("promise broken: the weights of int8 are not a quarter of the size")


if __name__ == "__main__":
    main()
