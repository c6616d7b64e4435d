"""Failures on a device: failed checks, missing drivers, exhausted memory, forks and threads."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from required_tools import require_module

import dualflow as df

require_module("pyopencl")

import pyopencl as cl  # noqa: E402

from dualflow.backends.opencl.devices import current_device  # noqa: E402  # it imports pyopencl
from dualflow.backends.opencl.memory import DeviceMemory  # noqa: E402


def output(program: str, env: Mapping[str, str] | None = None) -> str:
    """What a Python program prints, in a process of its own."""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


# Checks


def test_a_failed_check_names_the_op_and_the_line_and_leaves_variables_unchanged() -> None:
    v = df.Variable([1.0, 2.0, 3.0])

    @df.function(backend="opencl")
    def f(i):
        v.assign(df.gather(v * 2.0, i))

    f(df.constant([2, 1, 0]))
    assert v.numpy().tolist() == [6.0, 4.0, 2.0]
    with pytest.raises(df.errors.OutOfRangeError, match=r"gather: an index is out of range(?s:.*)v\.assign"):
        f(df.constant([0, 1, 7]))
    assert v.numpy().tolist() == [6.0, 4.0, 2.0]


def test_the_first_of_several_failed_checks_is_reported() -> None:
    @df.function(backend="opencl")
    def f(x, i, j):
        y = df.sort(df.gather(x, i))  # the host waits here
        return df.tensor_scatter_nd_add(y, j, df.ones([2]))

    x, good, bad = df.ones([4]), df.constant([[0], [1]]), df.constant([[0], [9]])
    f(x, df.constant([0, 1]), good)
    with pytest.raises(df.errors.OutOfRangeError, match=r"^gather"):
        f(x, df.constant([0, 9]), bad)
    with pytest.raises(df.errors.OutOfRangeError, match=r"^tensor_scatter_nd_add"):
        f(x, df.constant([0, 1]), bad)
    assert f(x, df.constant([0, 1]), good).numpy().tolist() == [2.0, 2.0]


def test_an_assertion_shows_the_values_of_the_device() -> None:
    @df.function(backend="opencl")
    def f(x):
        y = df.exp(x)
        df.debugging.assert_less(y, 5.0)
        return y

    f(df.zeros([3]))
    with pytest.raises(df.errors.InvalidArgumentError, match=r"\[2\]: x = 7\.389"):
        f(df.constant([0.0, 1.0, 2.0]))


# Devices

NO_DRIVER = """
import dualflow as df
print(len(df.config.list_physical_devices("GPU")))
try:
    df.function(lambda x: x + 1.0, backend="opencl")(df.ones([3]))
except LookupError as error:
    print(error)
"""


def test_a_missing_driver_is_an_error_that_names_the_systems_package() -> None:
    printed = output(NO_DRIVER, {"OCL_ICD_VENDORS": "/nonexistent"})
    assert re.match(r"0\nThere is no OpenCL driver\. Install .*pocl-opencl-icd", printed)


def test_a_cpu_counts_as_a_device_if_the_setting_says_so() -> None:
    if not current_device().device.type & cl.device_type.CPU:
        pytest.skip("the driver has a GPU")
    assert re.match(
        r"0\nOpenCL has no GPU, only .*DUALFLOW_OPENCL=all", output(NO_DRIVER, {"DUALFLOW_OPENCL": ""})
    )
    assert re.match(r"[1-9]\d*", output(NO_DRIVER, {"DUALFLOW_OPENCL": "all"}))


def test_without_pyopencl_the_error_names_the_extra() -> None:
    printed = output("import sys; sys.modules['pyopencl'] = None" + NO_DRIVER)
    assert printed.startswith("0\n")
    assert "pip install 'dualflow[gpu]'" in printed


def test_an_unknown_setting_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALFLOW_OPENCL", "fastest")
    with pytest.raises(df.errors.InvalidArgumentError, match="DUALFLOW_OPENCL='fastest' is none of gpu, all"):
        df.config.list_physical_devices()


def test_an_opencl_device_is_listed_as_a_gpu_whose_memory_grows() -> None:
    gpu = df.config.list_physical_devices("GPU")[0]
    assert gpu.name == "/physical_device:GPU:0"
    assert df.config.list_physical_devices()[1] == gpu
    df.config.experimental.set_memory_growth(gpu, True)
    assert df.config.experimental.get_memory_growth(gpu)
    with pytest.raises(df.errors.InvalidArgumentError, match="allocated at once"):
        df.config.experimental.set_memory_growth(gpu, False)


def test_a_hidden_device_is_not_used() -> None:
    hide = "import dualflow as df; df.config.set_visible_devices([], 'GPU')"
    assert "set_visible_devices has hidden each GPU" in output(hide + NO_DRIVER)


def test_a_device_whose_groups_are_too_small_is_refused() -> None:
    if "Portable" not in current_device().device.platform.name:
        pytest.skip("the driver is not PoCL, which takes the size of groups from a variable")
    program = NO_DRIVER.replace("LookupError", "df.errors.FailedPreconditionError")
    printed = output(program, {"POCL_MAX_WORK_GROUP_SIZE": "128"})
    assert re.search("has groups of at most 128 work-items, and kernels have groups of 256", printed)


# Memory


def test_exhausted_memory_is_an_error_with_the_bytes_and_the_next_call_runs() -> None:
    """The scan has rows of two, so that no kernel runs before the buffer is requested."""
    rows = (current_device().device.max_mem_alloc_size + (1 << 30)) // 8

    @df.function(backend="opencl")
    def f(x, big):
        return df.reduce_max(df.cumsum(df.broadcast_to(x, [rows if big else 3, 2]), 1))

    before = current_device().memory.in_use
    with pytest.raises(df.errors.ResourceExhaustedError, match=r"out of memory: .* bytes were requested for"):
        f(df.ones([1]), True)
    assert current_device().memory.in_use == before
    assert f(df.ones([1]), False).numpy() == 2.0


def test_exhausted_memory_names_the_tensor_and_variables_keep_their_values() -> None:
    side = int((current_device().device.max_mem_alloc_size / 4) ** 0.5) + 30000
    with df.device("/gpu:0"):
        v = df.Variable([1.0])
        with pytest.raises(
            df.errors.ResourceExhaustedError,
            match=r": [\d,]+ bytes were requested for result 0 of broadcast_to, more than the [\d,]+ of its "
            r"largest buffer, and [\d,]+ of [\d,]+ bytes are in use",
        ):
            v.assign(df.reduce_sum(df.broadcast_to(v, [side, side]), [0, 1])[None])
    assert v.numpy().tolist() == [1.0]
    assert (v + 1.0).numpy().tolist() == [2.0]


def test_a_growing_stack_has_at_most_the_rows_of_the_largest_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    @df.function(backend="opencl")
    def slope(x, n):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, df.sin(y)), (df.constant(0), x))[1]
        return tape.gradient(y, x)

    x, memory = df.ones([200]), current_device().memory
    monkeypatch.setattr(memory, "largest", 81 * 800)  # rows of 800 bytes: 64, then 81
    slope(x, df.constant(3))
    before = memory.in_use
    assert slope(x, df.constant(81)).shape == [200]
    message = (
        r"65,600 bytes .* for the stack of rows of float32\[200\] in a loop of slope, more than the 64,800 "
    )
    with pytest.raises(df.errors.ResourceExhaustedError, match=message) as raised:
        slope(x, df.constant(82))
    assert "maximum_iterations" in str(raised.value.__notes__)
    assert memory.in_use == before
    assert slope(x, df.constant(81)).shape == [200]


def test_buffers_have_no_more_memory_together_than_the_device() -> None:
    """A driver that grants more fails at the first use, or ends the process, as PoCL does."""
    memory = DeviceMemory(current_device().context, "device")
    memory.total = 1000
    first = memory.allocate(500, "a tensor")
    memory.release(first)
    assert memory.kept == 512
    second = memory.allocate(700, "a tensor")  # the kept buffer is returned
    assert (memory.in_use, memory.kept, memory.available) == (768, 0, 232)
    memory.allocate(232, "a tensor")  # less than its size class
    message = "1 bytes were requested for the last tensor, and 1,000 of 1,000 bytes are in use"
    with pytest.raises(df.errors.ResourceExhaustedError, match=message):
        memory.allocate(1, "the last tensor")
    memory.release(second)
    memory.allocate(1, "the last tensor")


def test_calls_release_their_buffers() -> None:
    memory = current_device().memory

    @df.function(backend="opencl")
    def f(x, i):
        return df.gather(df.sort(df.nn.softmax(x @ x)), i), df.reduce_sum(x)

    x = df.ones([20, 20])
    f(x, df.constant([0]))
    in_use, kept = memory.in_use, memory.kept
    for i in range(40):
        if i % 2:
            f(x, df.constant([0]))
        else:
            with pytest.raises(df.errors.OutOfRangeError):
                f(x, df.constant([99]))
    assert (memory.in_use, memory.kept) == (in_use, kept)


def test_iterations_of_a_loop_share_the_memory_of_their_launches() -> None:
    memory = current_device().memory

    @df.function(backend="opencl")
    def f(x, n):
        for _ in df.range(n):
            x = df.nn.softmax(x)
        return x

    kept = []
    for n in (3, 60):
        memory.trim()
        f(df.ones([32, 300]), df.constant(n))
        kept.append(memory.kept)
    assert kept[0] == kept[1]


def test_released_buffers_are_returned_to_the_driver_by_a_trim() -> None:
    memory = DeviceMemory(current_device().context, "device")
    first = memory.allocate(1000, "a tensor")
    memory.release(first)
    assert memory.allocate(900, "a tensor") is first
    memory.release(first)
    memory.trim()
    assert (memory.in_use, memory.kept) == (0, 0)
    assert memory.allocate(1000, "a tensor") is not first


# Lost devices


def lost_tensor(shape: list[int]) -> df.Tensor:
    """A tensor whose buffer the queue refuses, as if its context were lost: the driver fails to copy it."""
    tensor = df.ones(shape).gpu()
    device = current_device()
    other = cl.Context([device.device])
    tensor.storage.buffer = cl.Buffer(other, cl.mem_flags.READ_WRITE, tensor.storage.buffer.size)
    return tensor


def test_a_device_that_fails_between_kernels_leaves_variables_unchanged() -> None:
    with df.device("/gpu:0"):
        v, w = df.Variable([1.0, 2.0]), df.Variable(3.0)

    @df.function
    def f(x, y):
        v.assign(v * x)
        w.assign_add(df.reduce_sum(df.sort(y)))  # the host sorts, between kernels
        return v.read_value()

    good, in_use = df.ones([4]).gpu(), current_device().memory.in_use
    assert f(2.0, good).numpy().tolist() == [2.0, 4.0]
    with pytest.raises(df.errors.FailedPreconditionError, match=r"failed in .*No variable has changed"):
        f(2.0, lost_tensor([4]))
    assert [x.numpy().tolist() for x in (v, w)] == [[2.0, 4.0], 7.0]
    gc.collect()
    assert current_device().memory.in_use == in_use
    assert f(2.0, good).numpy().tolist() == [4.0, 8.0]


def test_a_lost_variable_is_an_error_in_updates_and_transfers() -> None:
    with df.device("/gpu:0"):
        v, w = df.Variable([1.0, 2.0]), df.Variable([3.0, 4.0])
    v.assign(lost_tensor([2]))

    @df.function
    def f(x):
        w.assign_add(x)
        v.assign(v * 2.0)

    with pytest.raises(df.errors.FailedPreconditionError, match=r"failed in f: .*INVALID_CONTEXT"):
        f(df.ones([2]))
    assert w.numpy().tolist() == [3.0, 4.0]
    with pytest.raises(df.errors.FailedPreconditionError, match="failed in a transfer to the host"):
        v.numpy()


# Signals

INTERRUPTED = """
import gc, os, signal, threading
import dualflow as df
from dualflow.backends.opencl.devices import current_device

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
PLACE
    v, log = df.Variable(df.ones([500])), df.Variable(0)
    x = df.ones([500])

@df.function(backend="opencl")
def f(x, n):
    log.assign_add(1)
    for _ in df.range(n):
        x = df.cumsum(x) * 0.5
    v.assign(x)

f(x, 3)
before, in_use = v.numpy().tolist(), current_device().memory.in_use
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    f(x, 2**31 - 1)
except KeyboardInterrupt:
    print("interrupted")
gc.collect()
print(v.numpy().tolist() == before, current_device().memory.in_use - in_use)
f(x, 3)
print(v.numpy().tolist() == before, log.numpy())
"""


@pytest.mark.parametrize("place", ["if True:", "with df.device('/gpu:0'):"])
def test_ctrl_c_ends_a_loop_between_kernels(place: str, tmp_path: Path) -> None:
    """What was assigned before the loop is kept, as on the CPU."""
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED.replace("PLACE", place), encoding="utf-8")
    lines = output(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')").splitlines()
    assert lines == ["interrupted", "True 0", "True 3"]


# Processes and threads

FORK = """
import os
import dualflow as df
f = df.function(lambda x: x + 1.0, backend="opencl")
f(df.ones([3]))
if not os.fork():
    try:
        f(df.ones([3]))
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
print(f(df.ones([3])).numpy())
"""


def test_a_forked_child_gets_an_error_that_recommends_spawn() -> None:
    lines = output(FORK).splitlines()
    assert "can't use it. Start processes with multiprocessing.get_context('spawn')" in lines[0]
    assert lines[1:] == ["[2. 2. 2.]"]


FORK_WITH_TENSORS = """
import os
import dualflow as df
x = df.ones([3]).gpu()
if not os.fork():
    for use in (lambda: x.numpy(), lambda: x + 1.0, lambda: df.ones([3]).gpu()):
        try:
            use()
        except df.errors.FailedPreconditionError as error:
            print(error, flush=True)
    print((df.ones([3]) + 1.0).numpy(), flush=True)
    del x
    os._exit(0)
os.wait()
print((x + 2.0).numpy())
"""


def test_a_forked_child_can_compute_on_the_host_alone() -> None:
    lines = output(FORK_WITH_TENSORS).splitlines()
    assert [("can't use it. Start processes" in line) for line in lines[:3]] == [True] * 3
    assert lines[3:] == ["[2. 2. 2.]", "[3. 3. 3.]"]


def test_threads_share_a_device() -> None:
    f = df.function(lambda x: df.reduce_sum(df.sort(x @ x)) + 1.0, backend="opencl")
    f(df.ones([8, 8]))

    def call(i: int) -> float:
        return float(f(df.fill([8, 8], float(i))))

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(call, range(100)))
    assert results == [512.0 * i * i + 1.0 for i in range(100)]
