"""Eager ops and tensors on a device: where each value is, and that it is the host's value."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from op_cases import check_each
from required_tools import require_module

import dualflow as df
from dualflow.core import dispatch
from dualflow.eager import num_gpus
from dualflow.eager.engine import EAGER
from dualflow.eager.replicas import INITIAL_VALUE
from dualflow.ops.testing.cases import Case

require_module("pyopencl")

import kernels_of_ops  # noqa: E402  # they import pyopencl

from dualflow.backends.opencl.devices import current_device  # noqa: E402

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
X = df.constant([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
DTYPES = [
    *(df.bool_, df.uint8, df.int8, df.int32, df.int64, df.uint64),
    *(df.float16, df.bfloat16, df.float32, df.float64, df.complex64, df.complex128),
]


@pytest.fixture
def strict_placement() -> Iterator[None]:
    df.config.set_soft_device_placement(False)
    yield
    df.config.set_soft_device_placement(True)


# Copies


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2, 0, 4)], ids=str)
def test_a_copy_on_the_device_has_the_elements_of_the_tensor(dtype: Any, shape: tuple[int, ...]) -> None:
    x = df.cast(
        df.reshape(df.range(np.prod(shape, dtype=int)) % 2 if shape else df.constant(1), shape), dtype
    )
    on_gpu = x.gpu()
    assert (on_gpu.device, on_gpu.shape, on_gpu.dtype, on_gpu.spec) == (GPU, x.shape, x.dtype, x.spec)
    assert on_gpu.gpu() is on_gpu
    on_cpu = on_gpu.cpu()
    assert on_cpu.device == CPU
    assert on_cpu.numpy().tobytes() == x.numpy().tobytes()


def test_a_view_is_copied_in_row_major_order() -> None:
    assert df.transpose(X).gpu().numpy().tolist() == X.numpy().T.tolist()


def test_python_reads_a_tensor_on_the_device_as_one_on_the_host() -> None:
    x, one = X.gpu(), df.constant(2.0).gpu()
    assert (repr(x), str(x), x.tolist(), len(x)) == (repr(X), str(X), X.tolist(), 2)
    assert (float(one), int(one), bool(one), one.item(), f"{one:.1f}") == (2.0, 2, True, 2.0, "2.0")
    assert [row.numpy().tolist() for row in x] == X.tolist()
    assert (type(one.numpy()), bytes(x)) == (np.float32, bytes(X))
    np.testing.assert_array_equal(np.asarray(x), X.numpy())
    np.testing.assert_array_equal(np.from_dlpack(x), X.numpy())
    with pytest.raises(BufferError, match="can't be exported without a copy"):
        x.__dlpack__(copy=False)
    assert x.shape is X.shape


def test_copies_stay_on_the_device_and_a_pickle_is_read_on_the_host() -> None:
    x = X.gpu()
    for copied in (copy.copy(x), copy.deepcopy(x), df.identity(x)):
        assert copied is not x
        assert copied.device == GPU
    restored = pickle.loads(pickle.dumps(x))
    assert restored.device == CPU
    assert restored.tolist() == X.tolist()


def test_there_is_no_second_gpu() -> None:
    with pytest.raises(df.errors.FailedPreconditionError, match="GPU:1 unknown device: a process uses one"):
        X.gpu(1)
    with pytest.warns(UserWarning, match="'/gpu:1' is not available"), df.device("/gpu:1"):
        assert (X + X).device == CPU


def test_the_device_is_listed() -> None:
    names = [device.name for device in df.config.list_logical_devices()]
    assert names == ["/device:CPU:0", "/device:GPU:0"]
    assert (num_gpus(), df.test.is_gpu_available(), df.test.gpu_device_name()) == (1, True, names[1])
    df.config.set_visible_devices([], "GPU")
    assert (num_gpus(), df.config.list_logical_devices("GPU")) == (0, [])
    with pytest.raises(df.errors.FailedPreconditionError, match="there is no GPU"):
        X.gpu()
    df.config.set_visible_devices(df.config.list_physical_devices())


# Placement


def test_outside_of_blocks_an_op_runs_where_one_of_its_inputs_is_on_the_device() -> None:
    assert (X + X).device == CPU
    assert (X.gpu() + X).device == (2.0 * X.gpu()).device == df.concat([X, X.gpu()], 0).device == GPU
    assert (X.gpu() + X).numpy().tolist() == (X + X).tolist()


@pytest.mark.parametrize("name", ["/gpu:0", "/GPU:0", "gpu", "/device:GPU:0", GPU])
def test_a_block_on_the_device_places_what_it_creates(name: str) -> None:
    with df.device(name):
        created = [df.constant(1.0), df.zeros([3]), X + X, X[0], df.identity(X), df.random.normal([3])]
        variable = df.Variable([1.0])
    assert {x.device for x in created} == {GPU}
    assert variable.device == variable.value().device == GPU


def test_the_first_replicas_initial_value_is_placed_as_well() -> None:
    token = INITIAL_VALUE.set(lambda own: own * 2.0)
    try:
        with df.device("/gpu:0"):
            variable = df.Variable([1.0])
    finally:
        INITIAL_VALUE.reset(token)
    assert (variable.device, variable.numpy().tolist()) == (GPU, [2.0])


def test_blocks_nest() -> None:
    with df.device("/gpu:0"):
        x = X + 1.0
        with df.device("/cpu:0"):
            assert {(x + 1.0).device, df.identity(x).device, df.constant(1.0).device} == {CPU}
            with df.device("/gpu:0"):
                assert (X + 1.0).device == GPU
        with df.device(None):
            assert (X + 1.0).device == CPU
            assert (x + 1.0).device == GPU
        assert (X + 1.0).device == GPU
    assert (X + 1.0).device == CPU


def test_a_block_ends_when_an_error_leaves_it() -> None:
    with pytest.raises(ZeroDivisionError), df.device("/gpu:0"):
        raise ZeroDivisionError
    assert (X + X).device == CPU


def test_strings_stay_on_the_host() -> None:
    with df.device("/gpu:0"):
        text = df.constant(["a", "b"])
        assert df.strings.length(text).numpy().tolist() == [1, 1]
    assert text.device == CPU


def test_an_op_without_device_code_runs_on_the_host_between_transfers() -> None:
    assert df.sort(X.gpu()).device == GPU
    assert df.sort(X.gpu()).numpy().tolist() == df.sort(X).tolist()
    values, counts = df.unique_with_counts(df.constant([3, 3, 1]).gpu())[::2]
    assert (values.numpy().tolist(), counts.numpy().tolist()) == ([3, 1], [2, 1])


@pytest.mark.usefixtures("strict_placement")
def test_without_soft_placement_an_op_without_device_code_is_an_error() -> None:
    assert df.exp(X.gpu()).device == GPU
    with pytest.raises(df.errors.InvalidArgumentError, match=r"sort has no code for .*NumPy sorts"):
        df.sort(X.gpu())
    with pytest.raises(ValueError, match=r"the devices are \['/cpu:0', '/gpu:0'\]"):
        df.device("/gpu:1")


def test_an_error_on_the_device_is_that_of_the_host() -> None:
    for x in (X, X.gpu()):
        with pytest.raises(df.errors.OutOfRangeError, match=r"^gather: index 7 is out of range for axis 0"):
            df.gather(x, [7])
        with pytest.raises(df.errors.InvalidArgumentError, match=r"^add\(float32\[2, 3\], float32\[4\]\)"):
            x + df.ones([4])


def check_in_a_block(case: Case) -> None:
    inputs = case.op.prepare(case.inputs, EAGER)
    expected = kernels_of_ops.applied(case, *inputs)
    with df.device("/gpu:0"):
        results = dispatch.current().apply(case.op, inputs, case.attrs)
    for result, host in zip(df.nest.flatten(results), df.nest.flatten(expected), strict=True):
        assert result.device == (CPU if host.dtype.is_string else GPU)
        a, b = np.asarray(result), np.asarray(host)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if b.dtype.kind in "fc":
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.exhaustive
def test_ops_in_a_block_have_the_results_of_the_host() -> None:
    check_each(kernels_of_ops.plain_cases(), check_in_a_block)


# Gradients


@pytest.mark.parametrize("outer", [True, False], ids=["tape around block", "block around tape"])
def test_a_tape_records_ops_on_the_device(outer: bool) -> None:
    def value_and_gradient(device: str) -> tuple[Any, Any]:
        if outer:
            with df.GradientTape() as tape:
                tape.watch(X)
                with df.device(device):
                    y = df.reduce_sum(df.tanh(X) * X[:, :1])
        else:
            with df.device(device), df.GradientTape() as tape:
                tape.watch(X)
                y = df.reduce_sum(df.tanh(X) * X[:, :1])
        return y, tape.gradient(y, X)

    (y, gradient), expected = value_and_gradient("/gpu:0"), value_and_gradient("/cpu:0")
    assert (y.device, gradient.device) == (GPU, GPU)
    np.testing.assert_allclose(y.numpy(), expected[0].numpy(), rtol=1e-6)
    np.testing.assert_allclose(gradient.numpy(), expected[1].numpy(), rtol=1e-6)


def test_a_tape_records_copies_between_devices() -> None:
    with df.GradientTape() as tape:
        tape.watch(X)
        y = (X.gpu() * 3.0).cpu() * X
    assert y.device == CPU
    assert tape.gradient(y, X).numpy().tolist() == (6.0 * X).tolist()


def test_a_tape_that_begins_in_a_block_and_ends_after_it() -> None:
    tape = df.GradientTape()
    with df.device("/gpu:0"):
        tape.__enter__()
        tape.watch(X)
        y = X * X
    z = y + df.constant(1.0)
    tape.__exit__(None, None, None)
    assert (X + X).device == CPU
    assert tape.gradient(z, X).numpy().tolist() == (2.0 * X).tolist()


def test_forward_mode_on_the_device() -> None:
    with df.autodiff.ForwardAccumulator(X, df.ones_like(X)) as accumulator, df.device("/gpu:0"):
        y = X * X
    assert accumulator.jvp(y).numpy().tolist() == (2.0 * X).tolist()


@pytest.mark.parametrize("function", [df.nn.softmax, df.nn.gelu, df.linalg.inv, df.reduce_logsumexp])
def test_functions_of_several_ops_on_the_device(function: Callable[[Any], Any]) -> None:
    x = df.constant([[2.0, 1.0], [0.5, -3.0]])
    result = function(x.gpu())
    assert result.device == GPU
    np.testing.assert_allclose(result.numpy(), function(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: 1.0 in x,
        repr,
        str,
        bytes,
        np.asarray,
        lambda x: float(x[0, :1]),
        lambda x: bool(x[0, :1]),
        lambda x: f"{x[0, 0]:.1f}",
    ],
)
def test_a_use_on_the_host_transfers_the_elements_once(use: Any) -> None:
    x = df.ones([2, 3]).gpu()
    before = current_device().transferred
    use(x)
    assert current_device().transferred - before in (4, 24)


def test_the_length_and_the_rows_of_a_tensor_transfer_nothing() -> None:
    x = df.ones([2, 3]).gpu()
    before = current_device().transferred
    assert [row.device for row in x] == [x.device] * len(x)
    assert current_device().transferred == before
