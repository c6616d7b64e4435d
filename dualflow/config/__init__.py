"""Runtime configuration, ``df.config``: devices, backend, eager kernels, loop memory, optimiser."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish
from dualflow.eager.devices import LogicalDevice as LogicalDevice
from dualflow.eager.devices import PhysicalDevice as PhysicalDevice
from dualflow.eager.devices import get_soft_device_placement as get_soft_device_placement
from dualflow.eager.devices import get_visible_devices as get_visible_devices
from dualflow.eager.devices import list_logical_devices as list_logical_devices
from dualflow.eager.devices import list_physical_devices as list_physical_devices
from dualflow.eager.devices import set_soft_device_placement as set_soft_device_placement
from dualflow.eager.devices import set_visible_devices as set_visible_devices
from dualflow.function.options import get_backend as get_backend
from dualflow.function.options import get_eager_kernels as get_eager_kernels
from dualflow.function.options import loop_memory as loop_memory
from dualflow.function.options import set_backend as set_backend
from dualflow.function.options import set_eager_kernels as set_eager_kernels
from dualflow.function.options import set_loop_memory as set_loop_memory
from dualflow.function.run_eagerly import functions_run_eagerly as functions_run_eagerly
from dualflow.function.run_eagerly import run_functions_eagerly as run_functions_eagerly

experimental_functions_run_eagerly = functions_run_eagerly
experimental_run_functions_eagerly = run_functions_eagerly

if TYPE_CHECKING:
    from dualflow.config import experimental as experimental
    from dualflow.config import optimizer as optimizer

_publish(globals(), lazy={"dualflow.config": "experimental optimizer"})
