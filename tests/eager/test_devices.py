"""There is one device."""

import pytest

import dualflow as df


@pytest.mark.parametrize(
    "name",
    ["/cpu:0", "/CPU:0", "CPU:0", "/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0", None],
)
def test_the_cpu_by_its_names(name):
    with df.device(name):
        assert df.constant(1).device.endswith("device:CPU:0")


@pytest.mark.parametrize("name", ["/gpu:0", "/cpu:1", "GPU:0"])
def test_other_devices_are_not_available(name):
    with pytest.raises(ValueError, match=r"not available: the devices are \['/cpu:0'\]"), df.device(name):
        pass


def test_a_name_of_no_device():
    with pytest.raises(ValueError, match="no name of a device"), df.device("fast"):
        pass


def test_physical_devices():
    (cpu,) = df.config.list_physical_devices("CPU")
    assert (cpu.name, cpu.device_type) == ("/physical_device:CPU:0", "CPU")
    assert df.config.list_physical_devices("GPU") == []
    assert df.config.list_physical_devices() == [cpu]
