"""A program as users write it, with types: checked by type checkers, and run."""

from __future__ import annotations

import numpy as np

import dualflow as df
from dualflow.compat import v1


class Line(df.Module):
    """A line through points."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = df.Variable(0.0, name="slope")
        self.offset = df.Variable(0.0, name="offset")

    @df.function
    def __call__(self, x: df.Tensor) -> df.Tensor:
        return self.slope * x + self.offset


class Classifier(df.Module):
    """A network of two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.kernel = df.Variable(df.random.normal([2, width], stddev=0.1))
        self.bias = df.Variable(df.zeros([width]))
        self.out = df.Variable(df.random.truncated_normal([width, 3]))

    def logits(self, x: df.Tensor) -> df.Tensor:
        hidden = df.nn.relu(x @ self.kernel + self.bias)
        return df.matmul(df.nn.dropout(hidden, rate=0.1), self.out)


def mean_squared_error(predictions: df.Tensor, targets: df.Tensor) -> df.Tensor:
    return df.reduce_mean(df.square(predictions - targets))


def fit(line: Line, x: df.Tensor, y: df.Tensor, steps: int) -> list[float]:
    losses: list[float] = []
    for _ in range(steps):
        with df.GradientTape() as tape:
            loss = mean_squared_error(line(x), y)
        slope, offset = tape.gradient(loss, [line.slope, line.offset])
        line.slope.assign_sub(0.1 * slope)
        line.offset.assign_sub(offset * 0.1)
        losses.append(float(loss))
    return losses


@df.function(reduce_retracing=True)
def scaled(x: df.Tensor, factor: float = 2.0) -> df.Tensor:
    if df.reduce_sum(x) > 0.0:
        x = x * factor
    return x


def train(network: Classifier, points: df.Tensor, labels: df.Tensor) -> float:
    optimizer = v1.train.AdamOptimizer(0.01)

    def loss() -> df.Tensor:
        losses = df.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=network.logits(points))
        return df.reduce_mean(losses)

    for _ in range(3):
        optimizer.minimize(loss)
    return float(loss())


def arithmetic() -> None:
    x = df.constant([[1.0, 2.0], [3.0, 4.0]], dtype=df.float32)
    y = 1.0 - x / 2 + x**2 - x % 2 // 1
    y = -y + abs(x) + np.ones([2, 2]) * x + [[1, 2], [3, 4]] + x[0] + x[:, 1:] + x[..., df.newaxis, 0]
    flags = (x > 2.0) & (y <= x) | ~(x == y)
    rows: list[df.Tensor] = list(x)
    total: float = float(df.reduce_sum(x)) + int(x[0, 0]) + len(x) + sum(float(r[0]) for r in rows)
    array = x.numpy()
    halves: list[df.Tensor] = df.split(x, 2, axis=0)
    mean, variance = df.nn.moments(x, axes=[0])
    values, places = df.math.top_k(x, k=1)
    size: int | None = x.shape[0]
    print(
        array.sum(), total, mean + variance, values, places, x.dtype.name, x.shape.rank, size, x.ndim, flags
    )
    print(df.exp(1), df.exp(np.float64(1.0)), df.add(x, halves[0]), df.exp(range(3)))
    print(df.where(flags, x, y), df.cast(x, df.int32), df.stack([x, y]), df.concat([x, y], axis=-1), x.mT)


def old_graph() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [None, 2], name="x")
        weights = v1.get_variable("w", [2, 1])
        session.run(v1.global_variables_initializer())
        print(session.run(v1.matmul(x, weights), feed_dict={x: np.ones([3, 2])}))


def main() -> None:
    x = df.linspace(-1.0, 1.0, 20)
    line = Line()
    losses = fit(line, x, 3.0 * x + 1.0, steps=50)
    assert losses[-1] < losses[0]
    assert all(variable.trainable for variable in line.trainable_variables)
    doubled: df.Tensor = scaled(x + 2.0)
    assert doubled.shape == x.shape
    print(scaled.get_concrete_function(x), df.gather(doubled, [0, 1]), line.slope.numpy())
    points = df.random.uniform([30, 2])
    print(train(Classifier(8), points, df.cast(points[:, 0] * 3.0, df.int32)))
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = df.reduce_sum(df.sin(x))
    single: df.Tensor = tape.gradient(y, x)
    both: dict[str, df.Tensor] = tape.gradient(y, {"x": x, "slope": line.slope}, unconnected_gradients="zero")
    print(single, both["slope"])
    arithmetic()
    old_graph()


if __name__ == "__main__":
    main()
