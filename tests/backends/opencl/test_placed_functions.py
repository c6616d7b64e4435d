"""Functions and variables on a device: results, what a call transfers, and failures."""

from __future__ import annotations

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required_tools import require_module

import dualflow as df

require_module("pyopencl")

from dualflow.backends.opencl.devices import current_device  # noqa: E402  # it imports pyopencl

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
X = df.constant(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32))


def transfers(function: Any) -> str:
    """What the latest call of a function has transferred, by its status."""
    return str(function.status()).partition("; ")[2].partition("\n")[0]


def variable_on_gpu(value: Any) -> Any:
    with df.device("/gpu:0"):
        return df.Variable(value)


@pytest.mark.parametrize("backend", ["llvm", "opencl"])
def test_a_call_with_arguments_on_the_device_transfers_nothing(backend: str) -> None:
    f = df.function(
        lambda x: (df.tanh(x) @ df.transpose(x), df.reduce_sum(x)), backend=backend, sizes="exact"
    )
    expected, x = f(X), X.gpu()
    for _ in range(3):
        results = f(x)
        assert [y.device for y in results] == [GPU, GPU]
        for y, host in zip(results, expected, strict=True):
            np.testing.assert_allclose(y.numpy(), host.numpy(), rtol=1e-5, atol=1e-6)
    assert transfers(f) == "no transfers (0 bytes)"
    assert [y.device for y in f(X)] == [CPU, CPU]


def test_a_call_in_a_block_runs_on_the_device_and_in_a_block_of_the_cpu_on_the_host() -> None:
    f = df.function(lambda x: x * 2.0 + 1.0)
    with df.device("/gpu:0"):
        assert [f(X).device, f(X).device] == [GPU, GPU]
    assert transfers(f) == "1 transfer to the device (60 bytes)"
    with df.device("/cpu:0"):
        assert f(X.gpu()).device == CPU
    assert f(X).device == CPU


def test_a_block_inside_of_a_function_compiles_it_for_the_device() -> None:
    @df.function
    def f(x):
        with df.device("/gpu:0"):
            y = df.exp(x)
        return y + 1.0

    np.testing.assert_allclose(f(X).numpy(), np.exp(X.numpy()) + 1.0, rtol=1e-6)
    assert "OpenCL" in str(f.status())


def test_functions_of_all_sizes_run_on_the_device() -> None:
    f = df.function(lambda x: df.reduce_sum(x * x, 0), input_signature=[df.TensorSpec([None, 3])])
    for n in (5, 3, 1):
        result = f(X[:n].gpu())
        assert result.device == GPU
        np.testing.assert_allclose(result.numpy(), (X.numpy()[:n] ** 2).sum(0), rtol=1e-6)


def test_a_result_whose_size_depends_on_data_goes_to_the_device() -> None:
    f = df.function(lambda x: (df.unique(x)[0], x * 2))
    for values in ([3, 3, 1], [1, 2, 3]):
        unique, doubled = f(df.constant(values).gpu())
        assert (unique.device, doubled.device) == (GPU, GPU)
        assert unique.numpy().tolist() == list(dict.fromkeys(values))


def test_a_gradient_of_a_function_is_computed_on_the_device() -> None:
    f = df.function(lambda x, w: df.reduce_sum(df.tanh(x @ w)))
    w = variable_on_gpu(np.ones((3, 2), np.float32))
    with df.GradientTape() as tape:
        loss = f(X.gpu(), w)
    gradient = tape.gradient(loss, w)
    assert (loss.device, gradient.device) == (GPU, GPU)
    expected = X.numpy().T @ (1 - np.tanh(X.numpy() @ np.ones((3, 2), np.float32)) ** 2)
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_call_under_a_tape_transfers_nothing_and_keeps_variables_where_they_are() -> None:
    w, count = variable_on_gpu(np.ones((3, 2), np.float32)), variable_on_gpu(0.0)

    @df.function
    def loss(x):
        count.assign_add(1.0)
        return df.reduce_sum(df.tanh(x @ w))

    def step() -> tuple[Any, Any]:
        with df.GradientTape() as tape:
            y = loss(x)
        return y, tape.gradient(y, w)

    x = X.gpu()
    step()
    before = current_device().transferred
    step()
    y, gradient = step()
    assert current_device().transferred - before == 2 * 4  # the gradient of the result, 1.0
    assert {y.device, gradient.device, count.device, w.device} == {GPU}
    assert count.numpy() == 3.0


def test_a_second_gradient_of_a_conditional_in_a_loop_reads_the_branches_that_were_taken() -> None:
    w = df.constant(np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32))

    def loss(x):
        def body(i, y):
            return i + 1, df.cond(df.equal(i % 2, 0), lambda: df.tanh(y @ w), lambda: df.sin(y))

        return df.reduce_sum(df.while_loop(lambda i, y: i < 3, body, (df.constant(0), x))[1])

    def second(f):
        with df.GradientTape() as outer:
            outer.watch(X)
            with df.GradientTape() as inner:
                inner.watch(X)
                y = f(X)
            slope = df.reduce_sum(inner.gradient(y, X) ** 2)
        return outer.gradient(slope, X).numpy()

    result, expected = (second(df.function(loss, backend=backend)) for backend in ("opencl", "llvm"))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


# Variables


def test_assignments_keep_a_variable_where_it_is() -> None:
    on_gpu, on_cpu = variable_on_gpu([1.0, 2.0]), df.Variable([1.0, 2.0])
    one = df.ones([2])
    for v, device in ((on_gpu, GPU), (on_cpu, CPU)):
        for value in (one, one.gpu()):
            v.assign(value)
            v.assign_add(value)
            v[0].assign(value[0])
            assert (v.device, v.value().device) == (device, device)
        assert v.numpy().tolist() == [1.0, 2.0]
    for copied in (copy.copy(on_gpu), copy.deepcopy(on_gpu)):
        assert copied.device == GPU
    assert pickle.loads(pickle.dumps(on_gpu)).numpy().tolist() == [1.0, 2.0]


def test_a_training_step_on_the_device_transfers_nothing() -> None:
    w, x = variable_on_gpu(np.zeros((3, 1), np.float32)), X.gpu()

    @df.function
    def step(x):
        with df.GradientTape() as tape:
            loss = df.reduce_mean((x @ w - 1.0) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    losses = [step(x) for _ in range(20)]
    assert losses[-1].numpy() < losses[0].numpy()
    assert {loss.device for loss in losses} == {w.device} == {GPU}
    assert transfers(step) == "no transfers (0 bytes)"


def test_an_optimizer_keeps_its_state_beside_the_variable() -> None:
    w, x = variable_on_gpu(np.zeros((3, 1), np.float32)), X.gpu()
    optimizer = df.compat.v1.train.AdamOptimizer(0.1)
    step = df.function(lambda: optimizer.minimize(lambda: df.reduce_mean((x @ w - 1.0) ** 2)))
    step()
    assert {variable.device for variable in optimizer.variables()} == {GPU}
    before = current_device().transferred
    for _ in range(3):
        step()
    assert current_device().transferred == before


def test_a_variable_that_a_function_creates_is_on_the_device_of_the_block() -> None:
    variables = []

    @df.function(autograph=False)
    def f(x):
        if not variables:
            variables.append(df.Variable([2.0]))
            with df.init_scope():
                variables.append(df.Variable([3.0]))
        return x * variables[0] * variables[1]

    with df.device("/gpu:0"):
        assert f(df.constant([2.0])).numpy().tolist() == [12.0]
    assert [v.device for v in variables] == [GPU, GPU]


def test_each_variable_of_a_call_stays_where_it_is() -> None:
    on_gpu, on_cpu = variable_on_gpu([1.0, 2.0]), df.Variable([3.0, 4.0])

    @df.function
    def exchange():
        before = on_gpu + 0.0
        on_gpu.assign(on_cpu)
        on_cpu.assign(before)

    exchange()
    assert (on_gpu.device, on_gpu.numpy().tolist()) == (GPU, [3.0, 4.0])
    assert (on_cpu.device, on_cpu.numpy().tolist()) == (CPU, [1.0, 2.0])


def test_a_call_on_the_host_leaves_a_variable_on_the_device() -> None:
    v = variable_on_gpu([1.0, 2.0])
    double = df.function(lambda: v.assign(v * 2.0))
    for _ in range(3):
        with df.device("/cpu:0"):
            double()
    assert (v.device, v.numpy().tolist()) == (GPU, [8.0, 16.0])


@pytest.mark.parametrize("deferred", [False, True])
def test_a_checkpoint_restores_a_variable_where_it_is(tmp_path: Path, deferred: bool) -> None:
    path = df.train.Checkpoint(v=variable_on_gpu([1.0, 2.0])).save(str(tmp_path / "c"))
    if deferred:
        checkpoint = df.train.Checkpoint()
        status = checkpoint.restore(path)
        checkpoint.v = v = variable_on_gpu([0.0, 0.0])
        status.assert_consumed()
    else:
        v = variable_on_gpu([0.0, 0.0])
        df.train.Checkpoint(v=v).restore(path)
    assert (v.device, v.numpy().tolist()) == (GPU, [1.0, 2.0])


def test_a_tensor_that_was_read_before_a_call_keeps_its_value() -> None:
    v = variable_on_gpu([1.0, 2.0])
    before = v.value()
    df.function(lambda: v.assign_add([1.0, 1.0]))()
    assert (before.numpy().tolist(), v.numpy().tolist()) == ([1.0, 2.0], [2.0, 3.0])


def test_a_host_call_updates_a_variable_on_the_device() -> None:
    v = variable_on_gpu([3.0, 1.0, 2.0])
    f = df.function(lambda: v.assign(df.sort(v) * 2.0))
    f()
    f()
    assert (v.device, v.numpy().tolist()) == (GPU, [4.0, 8.0, 12.0])


def test_a_failed_call_leaves_variables_on_the_device_unchanged() -> None:
    v = variable_on_gpu([1.0, 2.0, 3.0])

    @df.function
    def f(i):
        v.assign(df.gather(v * 2.0, i))

    f(df.constant([2, 1, 0]).gpu())
    with pytest.raises(df.errors.OutOfRangeError, match="gather"):
        f(df.constant([0, 1, 7]).gpu())
    assert (v.device, v.numpy().tolist()) == (GPU, [6.0, 4.0, 2.0])


def test_assignments_before_the_failed_line_are_made_on_the_device() -> None:
    v = variable_on_gpu([1.0, 2.0])

    @df.function
    def f(x):
        v.assign(x)
        df.debugging.assert_less(x, 5.0)
        v.assign(2.0 * x)

    f(df.constant([1.0, 2.0]))
    with pytest.raises(df.errors.InvalidArgumentError):
        f(df.constant([1.0, 7.0]))
    assert (v.device, v.numpy().tolist()) == (GPU, [1.0, 7.0])


# Buffers


@pytest.mark.parametrize("times", [50, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_calls_and_ops_leave_no_buffer_behind(times: int) -> None:
    memory, x = current_device().memory, X.gpu()
    v = variable_on_gpu([0.0])
    f = df.function(lambda x: (v.assign_add([1.0]), x * 2.0))

    def run(times: int) -> None:
        for _ in range(times):
            f(x)
            y = x + x
            df.reduce_sum(y)

    run(3)
    gc.collect()
    before = memory.in_use, memory.kept
    run(times // 3)
    gc.collect()
    assert (memory.in_use, memory.kept) == before


def test_threads_share_the_device() -> None:
    v, x = variable_on_gpu([0.0]), X.gpu()
    count = df.function(lambda: v.assign_add([1.0]))

    def work(n: int) -> float:
        for _ in range(10):
            count()
            result = df.reduce_sum(x * float(n))
        return float(result)

    with ThreadPoolExecutor(4) as pool:
        sums = list(pool.map(work, range(4)))
    np.testing.assert_allclose(sums, [n * X.numpy().sum() for n in range(4)], rtol=1e-5, atol=1e-5)
    assert v.numpy().tolist() == [40.0]
