"""Device placement: there is one device, and ``with device(other)`` blocks run on it with a warning."""

import warnings

import pytest

import dualflow as df
from dualflow.core.device_names import VISIBLE_GPUS

CPU_NAMES = [
    "/cpu:0",
    "/CPU:0",
    "CPU:0",
    "cpu",
    "/device:CPU:0",
    "/job:localhost/replica:0/task:0/device:CPU:0",
]


@pytest.mark.parametrize("name", [*CPU_NAMES, "", None])
def test_the_cpu_by_its_names(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with df.device(name):
            assert df.constant(1).device.endswith("device:CPU:0")


@pytest.mark.parametrize("name", ["/gpu:0", "/cpu:1", "GPU:0", "gpu", "/device:GPU:1", "/device:TPU:0"])
def test_a_block_on_another_device_runs_on_the_cpu_with_a_warning(name):
    with (
        pytest.warns(UserWarning, match=f"'{name}' is not available; .* run on the CPU") as warned,
        df.device(name),
    ):
        assert df.constant(1).device.endswith("device:CPU:0")
    assert [warning.filename for warning in warned] == [__file__]


def test_a_line_warns_once():
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        for _ in range(3):
            with df.device("/gpu:0"):
                pass
    assert len(warned) == 1


def test_other_devices_are_errors_without_soft_placement():
    df.config.set_soft_device_placement(False)
    try:
        with pytest.raises(ValueError, match=r"not available: the devices are \['/cpu:0'\]"):
            df.device("/gpu:0")
    finally:
        df.config.set_soft_device_placement(True)
    assert df.config.get_soft_device_placement()


@pytest.mark.parametrize("name", ["fast", "/nonsense:0", "two words"])
def test_a_name_of_no_device(name):
    with pytest.raises(ValueError, match="not the name of a device"), df.device(name):
        pass


def test_without_an_opencl_driver_for_gpus_the_cpu_is_the_only_physical_device(monkeypatch):
    monkeypatch.delenv("DUALFLOW_OPENCL", raising=False)
    monkeypatch.setenv("OCL_ICD_VENDORS", "/nonexistent")
    (cpu,) = df.config.list_physical_devices("CPU")
    assert (cpu.name, cpu.device_type) == ("/physical_device:CPU:0", "CPU")
    assert df.config.list_physical_devices("GPU") == []
    assert df.config.list_physical_devices() == [cpu]


def test_logical_devices():
    assert [(d.name, d.device_type) for d in df.config.list_logical_devices()] == [("/device:CPU:0", "CPU")]
    assert df.config.list_logical_devices("GPU") == []
    with df.device(df.config.list_logical_devices("CPU")[0].name):
        pass


def test_the_devices_that_there_are_may_be_chosen(monkeypatch):
    monkeypatch.setattr(VISIBLE_GPUS, "numbers", None)
    cpus = df.config.list_physical_devices("CPU")
    df.config.set_visible_devices(cpus)
    df.config.set_visible_devices(cpus[0], "CPU")
    df.config.set_visible_devices([], "GPU")
    df.config.set_visible_devices([], "TPU")
    assert df.config.get_visible_devices() == cpus
    with pytest.raises(ValueError, match="The visible devices can't be"):
        df.config.set_visible_devices([], "CPU")


def test_a_tensor_is_on_the_cpu():
    x = df.constant([1.0])
    assert x.cpu() is x
    with pytest.raises(RuntimeError, match="GPU:1 unknown device"):
        x.gpu(1)


def test_tests_find_no_gpu():
    assert df.test.is_gpu_available() is False
    assert df.test.is_gpu_available(cuda_only=True, min_cuda_compute_capability=(3, 5)) is False
    assert df.test.gpu_device_name() == ""
    assert not df.test.is_built_with_cuda()
    assert not df.test.is_built_with_gpu_support()
