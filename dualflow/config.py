"""What the process runs on: ``df.config``."""

from dualflow.core.namespace import publish as _publish
from dualflow.eager.devices import PhysicalDevice as PhysicalDevice
from dualflow.eager.devices import list_physical_devices as list_physical_devices
from dualflow.function.decorator import functions_run_eagerly as functions_run_eagerly
from dualflow.function.decorator import run_functions_eagerly as run_functions_eagerly
from dualflow.function.segments import loop_memory as loop_memory
from dualflow.function.segments import set_loop_memory as set_loop_memory

_publish(globals())
