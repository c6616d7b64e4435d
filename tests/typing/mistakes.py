"""Lines that type checkers must report, each, and those beside them that they must not."""

from __future__ import annotations

import numpy as np

import dualflow as df
from dualflow.compat import v1


def names(x: df.Tensor, v: df.Variable) -> None:
    df.nosuch  # wrong
    df.math.nosuch  # wrong
    df.nn.rleu(x)  # wrong
    df.random.random_normal([2])  # wrong
    v1.nosuch  # wrong
    v1.train.Saver()  # wrong
    df.ones([2]).nosuch  # wrong
    df.exp(x).nosuch  # wrong
    (x + 1.0).nosuch  # wrong
    x[0].nosuch  # wrong
    x.T.nosuch  # wrong
    v.nosuch  # wrong
    v.value().nosuch  # wrong
    (v * 2.0).nosuch  # wrong
    df.float32.nosuch  # wrong
    df.nn.moments(x, [0])[0].nosuch  # wrong
    df.random.normal([2]).nosuch  # wrong
    df.split(x, 2)[0].nosuch  # wrong
    x.shape
    v.name


def values(x: df.Tensor) -> None:
    df.exp(None)  # wrong
    df.add(x)  # wrong
    df.add(x, {})  # wrong
    df.exp(x, nmae="y")  # wrong
    df.reduce_sum(x, keepdims="yes")  # wrong
    df.reduce_sum(x, keep=True)  # wrong
    df.random.set_seed("seven")  # wrong
    x + None  # wrong
    None - x  # wrong
    x @ object()  # wrong
    -x
    x + np.ones([2])


@df.function
def doubled(x: df.Tensor, times: int = 1) -> df.Tensor:
    return x * 2.0 * float(times)


class Model(df.Module):
    @df.function
    def call(self, x: df.Tensor) -> df.Tensor:
        return x


def functions(x: df.Tensor, model: Model) -> None:
    doubled(x).nosuch  # wrong
    doubled()  # wrong
    doubled(x, "twice")  # wrong
    doubled(x, time=2)  # wrong
    doubled.nosuch  # wrong
    model.call(x).nosuch  # wrong
    model.call()  # wrong
    df.function(doubled, jit=True)  # wrong
    doubled.explain()
    doubled(x, times=3)
    model.call(x)


def gradients(x: df.Tensor, v: df.Variable) -> None:
    with df.GradientTape() as tape:
        y = df.square(v)
    tape.gradient(y, v).nosuch  # wrong
    tape.gradient(y, [v])[0].nosuch  # wrong
    tape.gradient(y, [v]).shape  # wrong
    tape.gradient(y, v, unconnected="zero")  # wrong
    tape.gradient(y, v, unconnected_gradients="zero").shape


def arguments(x: df.Tensor) -> None:
    df.matmul("x", object())  # wrong
    df.matmul(x)  # wrong
    df.reduce_sum(x, axis="rows")  # wrong
    df.reduce_mean(x, axis=["rows"])  # wrong
    df.concat([x, x], axis="last")  # wrong
    df.argmax(x, axis=1.5)  # wrong
    df.reshape(x, ["two", "three"])  # wrong
    df.zeros(["two", "three"])  # wrong
    df.zeros("2")  # wrong
    df.broadcast_to(x)  # wrong
    df.cast(x)  # wrong
    df.cast(x, 3.5)  # wrong
    df.ones([2], dtype=[2])  # wrong
    df.random.normal(["two"])  # wrong
    df.nn.conv2d(x, x, strides="1", padding="SAME")  # wrong
    df.one_hot(x, depth="three")  # wrong
    df.numpy.add(x)  # wrong
    df.numpy.add(x, x, out=x)  # wrong
    df.numpy.exp(object())  # wrong
    df.numpy.sort(x, axis="rows")  # wrong
    df.numpy.zeros(["two"])  # wrong
    df.keras.nosuch  # wrong
    df.keras.Sequential().fit(x, epoch=1)  # wrong
    df.keras.Sequential().fit(x, verbose=0)
    df.numpy.add(1, [2.0]).shape
    df.zeros((2, 3), "float64").shape
    df.zeros(df.shape(x), np.float32).shape
    df.reduce_sum(x, axis=np.array([0])).shape
