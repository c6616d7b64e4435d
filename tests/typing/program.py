"""Numerical code; a data pipeline, a training loop and a Keras model: checked by type checkers, and run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import dualflow as df
import dualflow.array_api as xp
import dualflow.numpy as dnp
from dualflow.types.experimental import AxisLike, DTypeLike, ShapeLike, TensorLike

# Numerical code


def standardized(x: TensorLike, axis: AxisLike = 0, dtype: DTypeLike = df.float32) -> df.Tensor:
    """``x`` with mean 0 and variance 1 along ``axis``."""
    values = df.cast(x, dtype)
    mean = df.reduce_mean(values, axis=axis, keepdims=True)
    variance = df.reduce_mean(df.square(values - mean), axis=axis, keepdims=True)
    return (values - mean) * df.math.rsqrt(variance + 1e-6)


def noise(shape: ShapeLike, seed: int, scale: float = 1.0) -> df.Tensor:
    return df.random.stateless_normal(shape, seed=[seed, 0], stddev=scale)


def power_iteration(matrix: df.Tensor, steps: int) -> tuple[df.Tensor, df.Tensor]:
    """The largest eigenvalue of a symmetric matrix, and its vector."""
    vector = df.ones([matrix.shape[0]], dtype=matrix.dtype)
    for _ in range(steps):
        vector = df.linalg.matvec(matrix, vector)
        vector = vector / df.norm(vector)
    value = df.tensordot(vector, df.linalg.matvec(matrix, vector), axes=1)
    return value, vector


@df.function
def newton_root(start: df.Tensor, target: df.Tensor) -> df.Tensor:
    """The square root of ``target``."""
    x = start
    for _ in df.range(20):
        x = 0.5 * (x + target / x)
    return x


def distances(a: df.Tensor, b: df.Tensor) -> df.Tensor:
    squares = df.reduce_sum(a**2, -1)[:, df.newaxis] + df.reduce_sum(b**2, -1)
    return df.sqrt(df.maximum(squares - 2.0 * df.matmul(a, b, transpose_b=True), 0.0))


def spectrum(signal: Sequence[float] | df.Tensor) -> df.Tensor:
    frames = df.signal.frame(df.convert_to_tensor(signal), frame_length=8, frame_step=4)
    return df.abs(df.signal.rfft(frames * df.signal.hann_window(8)))


def shapes_and_dtypes() -> None:
    x = df.reshape(df.range(24), [2, 3, 4])
    assert df.transpose(x, [2, 0, 1]).shape == [4, 2, 3]
    assert df.concat([x, x], axis=-1).shape == [2, 3, 8]
    assert df.stack([x, x]).shape.rank == 4
    assert df.expand_dims(x, 0).shape[0] == 1
    assert df.reduce_max(x, axis=[1, 2]).shape == [2]
    assert df.zeros(x.shape, dtype="float64").dtype == df.float64
    assert df.fill([2, 2], 7).dtype is df.int32
    assert df.one_hot([0, 2], depth=3).shape == [2, 3]
    assert df.pad(x[0], [[1, 1], [0, 0]]).shape == [5, 4]
    assert df.tile(x, [1, 2, 1]).shape == [2, 6, 4]
    assert df.cast(x, np.float32).dtype is df.float32
    assert df.broadcast_to(df.constant([1.0]), (3, 2)).shape == [3, 2]
    assert df.gather(x, np.array([1, 0]), axis=1).shape == [2, 2, 4]
    assert df.image.resize(df.ones([1, 4, 4, 3]), [2, 2]).shape == [1, 2, 2, 3]
    first, second = df.split(x, 2)
    assert first.shape == second.shape
    assert df.strings.join(["a", "b"]).dtype is df.string
    assert df.where(x > 3, x, 0).shape == x.shape
    assert df.math.top_k([3, 1, 2], k=2)[0].shape == [2]
    assert df.scatter_nd([[0], [2]], [1.0, 2.0], [4]).shape == [4]


def arrays() -> float:
    """NumPy's names on tensors."""
    x = dnp.linspace(0.0, 1.0, 11)
    y = dnp.exp(x) + dnp.sin(x) * 2.0
    area = dnp.sum((y[1:] + y[:-1]) / 2.0) * 0.1
    table = dnp.stack([x, y], axis=1)
    order = dnp.argsort(-table[:, 1])
    best = dnp.take(table, order, axis=0)[0]
    where = dnp.where(y > dnp.mean(y), y, 0.0)
    total = dnp.add(dnp.multiply(best, 2.0), where[:2])
    mean, weight = dnp.average(y, weights=x, returned=True)
    power = dnp.sum(dnp.abs(dnp.fft.rfft(y, n=16, norm="ortho")) ** 2, dtype="float64")
    return float(area) + float(dnp.max(total, axis=None)) + float(mean * weight + power)


def standard_arrays(x: df.Tensor) -> xp.Array:
    """The functions of the Array API."""
    values = xp.asarray(x, dtype=xp.float64)
    values[0] = 0.0
    scaled = xp.where(values > 0, values / xp.max(values), -1.0)
    return xp.sum(xp.stack([scaled, xp.zeros_like(scaled)]), axis=(0, 1)) + xp.linalg.vector_norm(values)


def drawn(seed: int) -> df.Tensor:
    """Numbers of a generator whose state is a variable."""
    generator = df.random.Generator.from_seed(seed, alg="philox")
    return generator.normal([2, 3], stddev=2.0) + generator.uniform([3], maxval=5.0, dtype="float32")


# A data pipeline


@dataclass(frozen=True)
class Sizes:
    """The sizes of a data set and of a model."""

    samples: int
    inputs: int
    classes: int
    batch: int = 16


def samples(sizes: Sizes, seed: int) -> tuple[df.Tensor, df.Tensor]:
    """Points around a centre for each class, and the numbers of the classes."""
    centres = noise([sizes.classes, sizes.inputs], seed, 3.0)
    labels = df.cast(df.range(sizes.samples) % sizes.classes, df.int32)
    return df.gather(centres, labels) + noise([sizes.samples, sizes.inputs], seed + 1), labels


def pipeline(sizes: Sizes, seed: int) -> df.data.Dataset[tuple[df.Tensor, df.Tensor]]:
    points, labels = samples(sizes, seed)

    def jittered(x: df.Tensor, label: df.Tensor) -> tuple[df.Tensor, df.Tensor]:
        return x + 0.01 * df.ones_like(x), label

    dataset = df.data.Dataset.from_tensor_slices((standardized(points), labels))
    dataset = dataset.shuffle(sizes.samples, seed=seed).map(jittered, num_parallel_calls=2)
    return dataset.batch(sizes.batch, drop_remainder=True).prefetch(1)


def batches(
    dataset: df.data.Dataset[tuple[df.Tensor, df.Tensor]], epochs: int
) -> Iterator[tuple[df.Tensor, df.Tensor]]:
    for _ in range(epochs):
        yield from dataset


# A training loop


class Dense(df.Module):
    """An affine layer."""

    def __init__(self, inputs: int, outputs: int, name: str | None = None) -> None:
        super().__init__(name=name)
        self.kernel = df.Variable(df.random.normal([inputs, outputs], stddev=inputs**-0.5), name="kernel")
        self.bias = df.Variable(df.zeros([outputs]), name="bias")

    def __call__(self, x: df.Tensor) -> df.Tensor:
        return df.nn.bias_add(x @ self.kernel, self.bias)


class Network(df.Module):
    """Two layers."""

    def __init__(self, sizes: Sizes, width: int = 16) -> None:
        super().__init__()
        self.hidden = Dense(sizes.inputs, width)
        self.out = Dense(width, sizes.classes)

    @df.function
    def __call__(self, x: df.Tensor, training: bool = False) -> df.Tensor:
        hidden = df.nn.gelu(self.hidden(x))
        if training:
            hidden = df.nn.dropout(hidden, rate=0.1)
        return self.out(hidden)


class Momentum:
    """Gradient descent with momentum."""

    def __init__(self, variables: Sequence[df.Variable], rate: float, momentum: float = 0.9) -> None:
        self.variables = list(variables)
        self.rate, self.momentum = rate, momentum
        self.velocities = [df.Variable(df.zeros_like(v), trainable=False) for v in self.variables]

    def apply(self, gradients: Sequence[df.Tensor]) -> None:
        for variable, velocity, gradient in zip(self.variables, self.velocities, gradients, strict=True):
            velocity.assign(self.momentum * velocity + gradient)
            variable.assign_sub(self.rate * velocity)


def loss_of(logits: df.Tensor, labels: df.Tensor) -> df.Tensor:
    return df.reduce_mean(df.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def accuracy(network: Network, dataset: df.data.Dataset) -> float:
    hits: list[float] = []
    for x, label in dataset:
        guess = df.argmax(network(x), axis=-1, output_type=df.int32)
        hits.append(float(df.reduce_mean(df.cast(df.equal(guess, label), df.float32))))
    return float(np.mean(hits))


def train(network: Network, dataset: df.data.Dataset, epochs: int) -> list[float]:
    optimizer = Momentum(network.trainable_variables, rate=0.05)
    losses: list[float] = []
    for x, label in batches(dataset, epochs):
        with df.GradientTape() as tape:
            loss = loss_of(network(x, training=True), label)
        gradients = tape.gradient(loss, optimizer.variables, unconnected_gradients="zero")
        clipped, _ = df.clip_by_global_norm(gradients, 5.0)
        optimizer.apply(clipped)
        losses.append(float(loss))
    return losses


def saved_and_restored(network: Network, sizes: Sizes) -> Network:
    with TemporaryDirectory() as folder:
        path = df.train.Checkpoint(network=network).save(str(Path(folder) / "state"))
        other = Network(sizes)
        df.train.Checkpoint(network=other).restore(path)
        return other


def exported(network: Network, folder: str, sizes: Sizes) -> df.Tensor:
    """The scores of a saved copy of the network, which needs none of its code."""

    @df.function(input_signature=[df.TensorSpec([None, sizes.inputs], df.float32, "points")])
    def scores(points: df.Tensor) -> df.Tensor:
        return df.nn.softmax(network(points), axis=-1)

    holder = df.Module()
    df.saved_model.save(holder, folder, signatures={"scores": scores})
    loaded = df.saved_model.load(folder)
    result: df.Tensor = loaded.signatures["scores"](points=df.ones([2, sizes.inputs]))["output_0"]
    return result


# Control flow and functions of rows


@df.function
def collatz(start: df.Tensor) -> df.Tensor:
    steps = df.constant(0)
    while start != 1:
        start = start // 2 if start % 2 == 0 else 3 * start + 1
        steps += 1
    return steps


def row_norms(rows: df.Tensor) -> df.Tensor:
    norms: df.Tensor = df.vectorized_map(lambda row: df.sqrt(df.reduce_sum(row * row)), rows)
    return norms


# A Keras model


class Scaled(df.keras.Layer):
    """A layer that multiplies by a trained number."""

    def __init__(self, start: float = 1.0) -> None:
        super().__init__()
        self.factor = self.add_weight(shape=(), initializer="ones", name="factor")
        self.start = start

    def call(self, x: df.Tensor) -> df.Tensor:
        scaled: df.Tensor = x * self.factor * self.start
        return scaled


def keras_model(sizes: Sizes) -> df.keras.Model:
    model = df.keras.Sequential(
        [
            df.keras.layers.Dense(16, activation="gelu"),
            df.keras.layers.Dense(sizes.classes),
        ]
    )
    loss = df.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=df.keras.optimizers.Adam(0.01), loss=loss, metrics=["accuracy"])
    return model


def keras_training(sizes: Sizes) -> float:
    model = keras_model(sizes)
    points, labels = samples(sizes, seed=3)
    history = model.fit(points, labels, epochs=2, batch_size=sizes.batch, verbose=0)
    model.evaluate(points, labels, verbose=0)
    first: float = history.history["loss"][0]
    return first


def main() -> None:
    sizes = Sizes(samples=64, inputs=4, classes=3)
    matrix = df.constant([[2.0, 1.0], [1.0, 3.0]])
    value, vector = power_iteration(matrix, 50)
    assert abs(float(value) - 3.618) < 1e-2, vector
    assert abs(float(newton_root(df.constant(1.0), df.constant(2.0))) - 2**0.5) < 1e-5
    assert distances(matrix, matrix).shape == [2, 2]
    assert spectrum([float(i % 4) for i in range(16)]).shape == [3, 5]
    shapes_and_dtypes()
    assert arrays() > 0.0
    assert float(standard_arrays(df.range(3))) > 0.0
    assert drawn(1).shape == [2, 3]
    dataset = pipeline(sizes, seed=1)
    network = Network(sizes)
    losses = train(network, dataset, epochs=4)
    assert losses[-1] < losses[0]
    assert accuracy(saved_and_restored(network, sizes), dataset) == accuracy(network, dataset)
    with TemporaryDirectory() as folder:
        assert exported(network, folder, sizes).shape == [2, sizes.classes]
    assert int(collatz(df.constant(6))) == 8
    assert row_norms(matrix).shape == [2]
    assert keras_training(sizes) > 0.0


if __name__ == "__main__":
    main()
