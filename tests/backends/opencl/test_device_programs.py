"""Programs in the forms of TensorFlow's guides that name devices."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required_tools import require_module

import dualflow as df
from dualflow.contrib import eager as tfe

require_module("pyopencl")

from dualflow.backends.opencl.devices import current_device  # noqa: E402  # it imports pyopencl

v1 = df.compat.v1


@pytest.fixture
def placement_log() -> Iterator[None]:
    df.debugging.set_log_device_placement(True)
    yield
    df.debugging.set_log_device_placement(False)


def test_a_profiler_records_the_ops_of_a_device(tmp_path: Path) -> None:
    a = df.ones([4, 4])
    with df.profiler.trace(tmp_path) as file:
        with df.device("/GPU:0"):
            b = df.nn.softmax(df.matmul(a, a))
        df.exp(b)
    ops = [e["name"] for e in json.loads(file.path.read_text())["traceEvents"] if e.get("cat") == "op"]
    assert ops == ["matmul", "softmax", "exp"]


X = df.constant([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
DIFFERENT_IN_ONE_ITEM: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "the sign of a zero": (lambda: df.maximum(X, 0.0) * 0.0, lambda: df.maximum(X, 0.0) * -0.0),
    "an attribute": (lambda: df.cumsum(X, 1), lambda: df.cumsum(X, 1, exclusive=True)),
    "an axis": (lambda: df.reduce_sum(X, 0), lambda: df.reduce_sum(X, 1)),
    "the type of a number": (lambda: X**2, lambda: X**2.0),
    "a dtype": (lambda: X + X, lambda: df.cast(X, df.int32) + df.cast(X, df.int32)),
    "the dtype of the result": (lambda: df.cast(X, df.int32), lambda: df.cast(X, df.int8)),
    "a shape": (lambda: X[:1] + X[:, :1], lambda: X[:1] + X[:1]),
    "the number of inputs": (lambda: df.concat([X, X], 0), lambda: df.concat([X, X, X], 0)),
    "the number of results": (lambda: df.range(0.0, 3.0, 1.0) + 1.0, lambda: df.range(0.0, 4.0, 1.0) + 1.0),
}


@pytest.mark.parametrize("name", DIFFERENT_IN_ONE_ITEM)
def test_ops_that_differ_in_one_item_have_programs_of_their_own(name: str) -> None:
    calls = DIFFERENT_IN_ONE_ITEM[name]
    for call in (*calls, calls[0]):
        expected = call().numpy()
        with df.device("/GPU:0"):
            result = call().numpy()
        assert (result.dtype, result.shape, result.tobytes()) == (
            expected.dtype,
            expected.shape,
            expected.tobytes(),
        )


@pytest.mark.usefixtures("placement_log")
def test_the_log_has_the_device_of_each_op(capfd: pytest.CaptureFixture[str]) -> None:
    assert df.debugging.get_log_device_placement()
    a = df.constant([[1.0, 2.0], [3.0, 4.0]])
    with df.device("/GPU:0"):
        b = df.matmul(a, a)
    with df.device("/CPU:0"):
        c = df.exp(b)
    df.sort(b)
    lines = re.findall(r"Executing op (\w+) in device \S*device:(\w+):0", capfd.readouterr().err)
    assert lines == [("matmul", "GPU"), ("exp", "CPU"), ("sort", "CPU")]
    assert c.shape == (2, 2)


@pytest.mark.usefixtures("placement_log")
def test_the_log_has_functions_of_several_ops_that_are_one_program(capfd: pytest.CaptureFixture[str]) -> None:
    df.nn.gelu(df.constant([1.0, 2.0]).gpu())
    with df.device("/GPU:0"):
        df.nn.softmax(df.constant([1.0, 2.0]))
    lines = re.findall(r"Executing op (\w+) in device \S*device:(\w+):0", capfd.readouterr().err)
    assert lines == [("gelu", "GPU"), ("softmax", "GPU")]


def test_an_op_is_timed_on_each_device() -> None:
    def measure(x: Any, steps: int) -> float:
        df.matmul(x, x)
        start = time.time()
        for _ in range(steps):
            x = df.matmul(x, x)
        _ = x.numpy()
        return time.time() - start

    for i in range(tfe.num_gpus() + 1):
        name = "/cpu:0" if i == 0 else f"/gpu:{i - 1}"
        with df.device(name):
            x = 0.1 * df.random.normal([8, 8])
            assert x.device.endswith(name[1:].upper())
            assert measure(x, 3) > 0


def test_copies_are_operands_of_ops_on_their_device() -> None:
    x = df.random.normal([10, 10])
    on_gpu, on_cpu = x.gpu(), x.cpu()
    products = df.matmul(on_cpu, on_cpu), df.matmul(on_gpu, on_gpu)
    assert [y.device[-5:] for y in products] == ["CPU:0", "GPU:0"]
    np.testing.assert_allclose(products[0].numpy(), products[1].numpy(), rtol=1e-5, atol=1e-5)


def test_variables_on_the_cpu_are_multiplied_on_the_gpu() -> None:
    with df.device("CPU:0"):
        a, b = df.Variable([[1.0, 2.0, 3.0]]), df.Variable([[2.0]])
    with df.device("GPU:0"):
        k = a * b
    assert (a.device[-5:], k.device[-5:], k.numpy().tolist()) == ("CPU:0", "GPU:0", [[2.0, 4.0, 6.0]])


def test_a_tensor_is_created_beside_a_variable() -> None:
    with df.device("/gpu:0"):
        v = df.Variable([1.0])
    with v1.colocate_with(v):
        assert df.constant([2.0]).device == v.device


def test_a_model_is_fitted_by_hand_on_the_gpu() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(100,)).astype(np.float32)
    with df.device("/gpu:0"):
        w, b = df.Variable(5.0), df.Variable(0.0)
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        for _ in range(40):
            with df.GradientTape() as tape:
                loss = df.reduce_mean(df.square(inputs * w + b - (inputs * 3.0 + 2.0)))
            optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
    assert (w.device[-5:], loss.device[-5:]) == ("GPU:0", "GPU:0")
    np.testing.assert_allclose([w.numpy(), b.numpy()], [3.0, 2.0], rtol=1e-2)


def test_a_session_prints_the_device_of_each_op(capfd: pytest.CaptureFixture[str]) -> None:
    for device, expected in (("/gpu:0", ["CPU:0", "GPU:0"]), ("/cpu:0", ["CPU:0", "CPU:0"])):
        with df.Graph().as_default(), df.device(device):
            x = v1.placeholder(df.float32, [3])
            y = df.exp(df.sort(x))
            with v1.Session(
                config=v1.ConfigProto(allow_soft_placement=True, log_device_placement=True)
            ) as session:
                session.run(y, {x: [3.0, 1.0, 2.0]})
                session.run(y, {x: [1.0, 1.0, 2.0]})
        lines = capfd.readouterr().err.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["sort", "exp"]
        assert [line[-5:] for line in lines] == expected


def test_a_session_runs_a_graph_with_a_block_on_the_gpu() -> None:
    with df.Graph().as_default():
        with df.device("/gpu:0"):
            w = v1.get_variable("w", initializer=np.ones((3, 1), np.float32))
            x = v1.placeholder(df.float32, [None, 3])
            y = df.matmul(x, w)
        train = v1.train.GradientDescentOptimizer(0.1).minimize(df.reduce_sum(y))
        config = v1.ConfigProto(allow_soft_placement=True, log_device_placement=True)
        with v1.Session(config=config) as session:
            session.run(v1.global_variables_initializer())
            for rows in (2, 4):
                batch = np.ones((rows, 3), np.float32)
                before = session.run(w)
                result, _ = session.run([y, train], {x: batch})
                np.testing.assert_allclose(result, batch @ before, rtol=1e-6)
                np.testing.assert_allclose(session.run(w), before - 0.1 * rows, rtol=1e-6)
            session.run(train, {x: batch})  # its constants are on the device afterwards
            moved = current_device().transferred
            session.run(train, {x: batch})
            assert current_device().transferred - moved == batch.nbytes  # the variable is on the device
