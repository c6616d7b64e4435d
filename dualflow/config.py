"""What the process runs on: ``df.config``."""

from dualflow.eager.devices import PhysicalDevice as PhysicalDevice
from dualflow.eager.devices import list_physical_devices as list_physical_devices
