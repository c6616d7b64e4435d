"""Lines that type checkers must report, and similar ones that they must not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import dualflow as df
import dualflow.array_api as xp
import dualflow.numpy as dnp
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
    df.autodiff.vmap(df.matmul, (None, 0), out_axes=1)
    df.autodiff.vmap(df.matmul, 0.5)  # wrong


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


def arrays(x: df.Tensor) -> None:
    a = xp.asarray([1.0, 2.0])
    xp.sum([1.0, 2.0])  # wrong
    xp.exp(2.0)  # wrong
    xp.add(a)  # wrong
    xp.zeros(["two"])  # wrong
    xp.reshape(a, "two")  # wrong
    xp.sum(a, axis="rows")  # wrong
    xp.full([2], "one")  # wrong
    xp.astype(a, 3.5)  # wrong
    xp.exp(a).nosuch  # wrong
    xp.add(a, x).nosuch  # wrong
    a.to_device(1)  # wrong
    a + None  # wrong
    (a + 1).nosuch  # wrong
    xp.add(a, 2.0).shape
    xp.sum(x, axis=np.array([0])).shape
    xp.where(a > 1, a, 0.0).shape
    xp.asarray(range(3)).shape


def numpy_functions(x: df.Tensor) -> None:
    dnp.fft.fft(x, n="four")  # wrong
    dnp.fft.fft(x, norm=2)  # wrong
    dnp.sum(x, axis="rows")  # wrong
    dnp.sum(x, out=x)  # wrong
    dnp.mean(object())  # wrong
    dnp.max(x, axis=1.5)  # wrong
    dnp.tensordot(x, x, axes="first")  # wrong
    dnp.average(x)[0].nosuch  # wrong
    dnp.average(x, returned=True).shape  # wrong
    dnp.average(x, returned=True)[1].shape
    dnp.fft.fft2(x, s=[2, 2], axes=(0, 1), norm="ortho").shape
    dnp.nansum(x, where=[True, False]).shape


def generators() -> None:
    g = df.random.Generator.from_seed(1)
    g.normal(["two"])  # wrong
    g.normal([2], dtype=3.5)  # wrong
    g.uniform([2], minval=object())  # wrong
    df.random.Generator.from_seed(object())  # wrong
    df.random.Generator.from_seed(1, alg=df.random.Algorithm.PHILOX)
    g.uniform([2], None, None, df.int32)


def specs(x: df.Tensor) -> None:
    df.TensorSpec(["two"])  # wrong
    df.TensorSpec([2], 3.5)  # wrong
    df.TensorShape([2]).concatenate("two")  # wrong
    df.TensorSpec(None, "float32").is_compatible_with(x)
    df.TensorShape([2]).merge_with(None)
    df.as_dtype(1)


def single(dataset: df.data.Dataset[df.Tensor]) -> None: ...


def datasets(pair: Callable[[df.Tensor], tuple[df.Tensor, df.Tensor]]) -> None:
    numbers = df.data.Dataset.range(3)
    pairs = numbers.map(pair).batch(2)
    next(iter(numbers)).nosuch  # wrong
    _, _, _ = next(iter(pairs))  # wrong
    single(pairs)  # wrong
    single(numbers)
    numbers.batch("two")  # wrong
    numbers.map(3)  # wrong
    numbers.get_single_element().nosuch  # wrong
    df.data.Dataset.zip(numbers, pairs).get_single_element()[1][0].nosuch  # wrong
    df.data.Dataset.zip(numbers, pairs).get_single_element()[1][0].shape
    df.data.Dataset.from_tensor_slices(([1, 2], np.ones([2]))).map(lambda a, b: a).batch(2)
    df.data.Dataset.from_tensor_slices((([1, 2], [3, 4]), {"x": [5, 6]})).shuffle(2)


def results(x: df.Tensor, some: bool) -> None:
    dnp.linspace(0, 1, 5).nosuch  # wrong
    dnp.linspace(0, 1, 5, retstep=True).shape  # wrong
    dnp.linspace(0, 1, 5, retstep=True)[1].shape
    dnp.linspace(0, 1, 5, retstep=some)[1].shape
    dnp.linalg.svd(x).nosuch  # wrong
    dnp.linalg.svd(x, compute_uv=False).shape
    dnp.linalg.qr(x, "r").nosuch  # wrong
    dnp.linalg.qr(x)[0].shape
    dnp.where(x > 0, x, 0.0).nosuch  # wrong
    dnp.where(x > 0)[0].shape
    dnp.unique(x).nosuch  # wrong
    dnp.unique(x, return_counts=True)[1].shape
    df.linalg.svd(x).shape  # wrong
    df.linalg.svd(x)[0].nosuch  # wrong
    df.linalg.svd(x, compute_uv=False).shape
    v1.losses.mean_squared_error(x, x).nosuch  # wrong
    v1.placeholder(v1.float32, [2]).nosuch  # wrong
