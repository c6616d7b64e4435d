"""Deep models for the benchmark ``deep``: each is one loss function over the names of TensorFlow or jax.

The names of TensorFlow serve dualflow too. ``quick`` selects tiny widths, for tests of the benchmark.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


class Names(Protocol):
    """The functions that the models call."""

    def matmul(self, x: Any, y: Any) -> Any: ...
    def transpose(self, x: Any, axes: Sequence[int]) -> Any: ...
    def reshape(self, x: Any, shape: Sequence[int]) -> Any: ...
    def concat(self, values: Sequence[Any], axis: int) -> Any: ...
    def take(self, x: Any, indices: Any) -> Any: ...
    def mean(self, x: Any, axes: Sequence[int], keepdims: bool = False) -> Any: ...
    def rsqrt(self, x: Any) -> Any: ...
    def tanh(self, x: Any) -> Any: ...
    def relu(self, x: Any) -> Any: ...
    def gelu(self, x: Any) -> Any: ...
    def softmax(self, x: Any) -> Any: ...
    def convolution(self, x: Any, kernel: Any, stride: int) -> Any: ...
    def cross_entropy(self, labels: Any, logits: Any) -> Any: ...


class TensorFlowNames:
    """The functions of a module with TensorFlow's names."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self.matmul, self.transpose, self.reshape = tf.matmul, tf.transpose, tf.reshape
        self.concat, self.take = tf.concat, tf.gather
        self.rsqrt, self.tanh = tf.math.rsqrt, tf.tanh
        self.mean, self.relu, self.softmax = tf.reduce_mean, tf.nn.relu, tf.nn.softmax

    def gelu(self, x: Any) -> Any:
        return self._tf.nn.gelu(x, approximate=True)

    def convolution(self, x: Any, kernel: Any, stride: int) -> Any:
        return self._tf.nn.conv2d(x, kernel, stride, "SAME")

    def cross_entropy(self, labels: Any, logits: Any) -> Any:
        losses = self._tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        return self._tf.reduce_mean(losses)


class JaxNames:
    """The functions of jax."""

    def __init__(self) -> None:
        import jax

        self._jax = jax
        self.matmul, self.transpose, self.reshape = jax.numpy.matmul, jax.numpy.transpose, jax.numpy.reshape
        self.concat, self.rsqrt, self.tanh = jax.numpy.concatenate, jax.lax.rsqrt, jax.numpy.tanh
        self.relu, self.softmax, self.gelu = jax.nn.relu, jax.nn.softmax, jax.nn.gelu

    def take(self, x: Any, indices: Any) -> Any:
        return x[indices]

    def mean(self, x: Any, axes: Sequence[int], keepdims: bool = False) -> Any:
        return self._jax.numpy.mean(x, tuple(axes), keepdims=keepdims)

    def convolution(self, x: Any, kernel: Any, stride: int) -> Any:
        layouts = ("NHWC", "HWIO", "NHWC")
        return self._jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=layouts
        )

    def cross_entropy(self, labels: Any, logits: Any) -> Any:
        scores = self._jax.nn.log_softmax(logits)
        return -self._jax.numpy.take_along_axis(scores, labels[:, None], 1).mean()


@dataclass(frozen=True, slots=True)
class Model:
    """A model in training.

    Attributes:
        weights: the initial weights.
        inputs: the other arguments of the loss.
        loss: ``loss(names, weights, *inputs)``.
    """

    weights: list[Array]
    inputs: tuple[Array, ...]
    loss: Callable[..., Any]


def transformer(layers: int, quick: bool) -> Model:
    """A decoder with a causal mask: 8 sequences of 64 tokens, width 256, 8 heads."""
    rng = np.random.default_rng(0)
    words, length, batch, width, heads = (50, 4, 2, 16, 2) if quick else (1000, 64, 8, 256, 8)
    shapes = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
    weights = [_normal(rng, (words, width), 0.02)]
    for _ in range(layers):
        weights += [_normal(rng, shape, 0.02) for shape in shapes]
        weights += [np.ones(width, np.float32), np.zeros(width, np.float32)] * 2
    tokens, targets = (rng.integers(0, words, (batch, length)).astype(np.int32) for _ in range(2))
    mask = np.triu(np.full((length, length), -1e9, np.float32), 1)

    def normalised(m: Names, x: Any, scale: Any, shift: Any) -> Any:
        centred = x - m.mean(x, [-1], keepdims=True)
        return centred * m.rsqrt(m.mean(centred * centred, [-1], keepdims=True) + 1e-5) * scale + shift

    def attention(m: Names, x: Any, project: Any, output: Any) -> Any:
        parts = m.reshape(m.matmul(x, project), [batch, length, 3, heads, width // heads])
        parts = m.transpose(parts, [2, 0, 3, 1, 4])
        scores = m.matmul(parts[0], m.transpose(parts[1], [0, 1, 3, 2])) * (width // heads) ** -0.5
        mixed = m.matmul(m.softmax(scores + mask), parts[2])
        return m.matmul(m.reshape(m.transpose(mixed, [0, 2, 1, 3]), [batch * length, width]), output)

    def loss(m: Names, weights: Sequence[Any], tokens: Any, targets: Any) -> Any:
        embedding, *others = weights
        x = m.reshape(m.take(embedding, tokens), [batch * length, width])
        for project, output, wide, narrow, scale, shift, scale_2, shift_2 in _groups(others, 8):
            x = x + attention(m, normalised(m, x, scale, shift), project, output)
            hidden = m.gelu(m.matmul(normalised(m, x, scale_2, shift_2), wide))
            x = x + m.matmul(hidden, narrow)
        logits = m.matmul(x, m.transpose(embedding, [1, 0]))
        return m.cross_entropy(m.reshape(targets, [batch * length]), logits)

    return Model(weights, (tokens, targets), loss)


def unrolled(steps: int, quick: bool) -> Model:
    """A recurrent cell in a Python loop: 16 sequences, 32 units."""
    rng = np.random.default_rng(0)
    batch, units = (2, 4) if quick else (16, 32)
    weights = [_normal(rng, (2 * units, units), 0.2), np.zeros(units, np.float32)]
    rows = _normal(rng, (steps, batch, units), 1.0)

    def loss(m: Names, weights: Sequence[Any], rows: Any) -> Any:
        weight, bias = weights
        state, total = rows[0] * 0.0, 0.0
        for i in range(steps):
            state = m.tanh(m.matmul(m.concat([rows[i], state], 1), weight) + bias)
            total = total + m.mean(state * state, [0, 1])
        return total

    return Model(weights, (rows,), loss)


def resnet(blocks: int, quick: bool) -> Model:
    """A residual network of ``6 blocks + 2`` layers with batch norm in training: 32 images of 32x32."""
    rng = np.random.default_rng(0)
    side, batch, widths = (8, 2, (2, 4, 8)) if quick else (32, 32, (16, 32, 64))
    strides, shapes = list(_residual_blocks(blocks, widths)), [(3, 3, 3, widths[0])]
    channels = widths[0]
    for width, (_, widens) in zip(np.repeat(widths, blocks).tolist(), strides, strict=True):
        shapes += [(3, 3, channels, width), (3, 3, width, width)]
        shapes += [(1, 1, channels, width)] if widens else []
        channels = width
    weights = [_normal(rng, (widths[-1], 10), 0.1)]
    for shape in shapes:
        kernel = _normal(rng, shape, float(np.sqrt(2 / np.prod(shape[:3]))))
        weights += [kernel, np.ones(shape[-1], np.float32), np.zeros(shape[-1], np.float32)]
    images = _normal(rng, (batch, side, side, 3), 1.0)
    labels = rng.integers(0, 10, batch).astype(np.int32)

    def loss(m: Names, weights: Sequence[Any], images: Any, labels: Any) -> Any:
        output, *others = weights
        layers = _groups(others, 3)

        def layer(x: Any, stride: int) -> Any:
            kernel, scale, shift = next(layers)
            y = m.convolution(x, kernel, stride)
            centred = y - m.mean(y, [0, 1, 2])
            return centred * m.rsqrt(m.mean(centred * centred, [0, 1, 2]) + 1e-5) * scale + shift

        x = m.relu(layer(images, 1))
        for stride, widens in strides:
            y = layer(m.relu(layer(x, stride)), 1)
            x = m.relu(y + (layer(x, stride) if widens else x))
        return m.cross_entropy(labels, m.matmul(m.mean(x, [1, 2]), output))

    return Model(weights, (images, labels), loss)


def _residual_blocks(blocks: int, widths: Sequence[int]) -> Iterator[tuple[int, bool]]:
    """The stride of each block, and whether it widens its input."""
    for width, i in itertools.product(widths, range(blocks)):
        widens = i == 0 and width != widths[0]
        yield (2 if widens else 1), widens


def _groups(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Consecutive groups of ``size`` values."""
    return (values[i : i + size] for i in range(0, len(values), size))


def _normal(rng: np.random.Generator, shape: Sequence[int], scale: float) -> Array:
    return (rng.standard_normal(shape) * scale).astype(np.float32)


MODELS: Final = {"transformer": transformer, "unrolled": unrolled, "resnet": resnet}
"""The models by name: functions of the depth and of ``quick``."""
