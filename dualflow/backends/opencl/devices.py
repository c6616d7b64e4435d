"""OpenCL devices: which there are, and the one that runs the programs of this process.

``DUALFLOW_OPENCL`` chooses: ``gpu``, the default, is the first GPU or accelerator; ``all`` counts CPUs too,
which a driver such as PoCL offers as devices.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np
import pyopencl as cl

from dualflow.backends.opencl.dialect import LARGEST_GROUP
from dualflow.backends.opencl.memory import DeviceMemory, is_exhausted
from dualflow.backends.opencl.products import ProductTile
from dualflow.core.device_names import VISIBLE_GPUS
from dualflow.core.errors import FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError
from dualflow.core.locks import SharedLock
from dualflow.core.spans import WATCHED, span

Array = np.ndarray[Any, Any]

SETTING: Final = "DUALFLOW_OPENCL"
"""The environment variable that selects the types of devices."""
SETTINGS: Final = ("gpu", "all")
FLOAT64: Final = "cl_khr_fp64"
"""The extension with which a device computes with float64."""
HIDDEN: Final = "df.config.set_visible_devices has hidden each GPU. Make one visible, or use another backend."
NO_CHECK_FAILED: Final = np.iinfo(np.int32).max
"""The status word of a call in which no check has failed."""


class OpenCLDevice:
    """A device with its queue, memory and compiled kernels.

    Commands run in the order in which they are enqueued, those of several threads too.

    Attributes:
        device: the device, as pyopencl has it.
        context: the context of its buffers and programs.
        queue: the queue of its commands.
        memory: allocates its buffers.
        process: the process that opened it; no other process can use it.
        transferred: the bytes of values that have been moved to it and from it.
        tiles: the tile of large matrix products of each dtype, once it is selected.
    """

    def __init__(self, device: cl.Device) -> None:
        self.device = device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.memory = DeviceMemory(self.context, device.name.strip())
        self.process = os.getpid()
        self.transferred = 0
        self.tiles: dict[str, ProductTile] = {}
        self._lock = SharedLock()
        self._kernels: dict[str, cl.Kernel] = {}

    @property
    def name(self) -> str:
        """The name of the device."""
        return str(self.device.name.strip())

    @property
    def float64(self) -> bool:
        """Whether it computes with float64."""
        return FLOAT64 in self.device.extensions.split()

    def kernel(self, text: str) -> cl.Kernel:
        """The one kernel of the program ``text``, compiled at its first use.

        Raises:
            InternalError: the driver refuses the program.
        """
        with self._lock.lock:
            kernel = self._kernels.get(text)
            if kernel is None:
                (kernel,) = self._build(text).all_kernels()
                self._kernels[text] = kernel
            return kernel

    def has_kernel(self, text: str) -> bool:
        """Whether the program ``text`` is compiled."""
        return text in self._kernels

    def _build(self, text: str) -> cl.Program:
        options = ["-w"]  # without a compiler's warnings, which pyopencl would pass on to users
        if self.device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        program = cl.Program(self.context, text)
        try:
            program.build(options)
        except cl.RuntimeError as error:
            raise InternalError(f"{self.name} can't compile a kernel: {error}\n{text}") from error
        return program

    def enqueue(self, kernel: cl.Kernel, work_items: int, group_size: int, arguments: Sequence[Any]) -> None:
        """Enqueue a launch of ``kernel`` by ``work_items``, in groups of ``group_size``."""
        with self._lock.lock:  # between setting the arguments and the launch
            kernel(self.queue, (work_items,), (group_size,), *arguments)

    def write(self, target: cl.Buffer, array: Array, offset: int = 0) -> cl.Event | None:
        """Enqueue a copy of a contiguous array to a buffer, from byte ``offset`` on; None if it is empty.

        The array must live until the event has completed.
        """
        if not array.nbytes:
            return None
        with self._transfer(array.nbytes, "device"):
            event = cl.enqueue_copy(self.queue, target, array, dst_offset=offset, is_blocking=False)
            if WATCHED.value is not None:
                event.wait()
        return event

    def read(self, source: cl.Buffer, array: Array, offset: int = 0) -> None:
        """Wait for the commands before, and copy a buffer from byte ``offset`` on to a contiguous array."""
        if array.nbytes:
            with self._transfer(array.nbytes, "host"):
                cl.enqueue_copy(self.queue, array, source, src_offset=offset)

    def _transfer(self, nbytes: int, where: str) -> AbstractContextManager[None]:
        """Count a transfer, and return its span; a profiler waits first for the commands in the queue."""
        with self._lock.lock:
            self.transferred += nbytes
        if WATCHED.value is not None:
            self.queue.finish()
        return span("transfer", f"{nbytes:,} bytes to the {where}")

    def failure(self, what: str, error: cl.Error) -> Exception:
        """The error to raise for a driver's error, which ended ``what``."""
        if is_exhausted(error):
            return self.memory.exhausted(f"{what} can't run ({error})")
        return FailedPreconditionError(
            f"The device {self.name} failed in {what}: {error}. No variable has changed. Start the process "
            "again if the device doesn't recover."
        )

    def require_own_process(self) -> None:
        """Raise in a forked child, which has no threads of the driver.

        Raises:
            FailedPreconditionError: another process has opened the device.
        """
        if os.getpid() != self.process:
            raise FailedPreconditionError(
                f"The OpenCL device {self.name} was opened before this process was forked, and a forked "
                "process can't use it. Start processes with multiprocessing.get_context('spawn')."
            )


class _OpenDevice:
    """The device of this process, once it is opened."""

    def __init__(self) -> None:
        self.lock = SharedLock()
        self.device: OpenCLDevice | None = None
        self.number = 0


_current: Final = _OpenDevice()


def current_device() -> OpenCLDevice:
    """The device that runs programs: the first visible one of :func:`devices`, opened at the first call.

    Raises:
        NotFoundError: there is none.
        FailedPreconditionError: its groups are too small for kernels; this process is forked from one
            that had opened it; or it has been opened, and another one is the first visible device now.
    """
    with _current.lock.lock:
        if _current.device is None:
            available = devices()
            visible = [i for i in range(len(available)) if VISIBLE_GPUS.has(i)]
            if not visible:
                raise NotFoundError(HIDDEN if available else no_device_message())
            _require_groups(available[visible[0]])
            _current.device, _current.number = OpenCLDevice(available[visible[0]]), visible[0]
        _current.device.require_own_process()
        selected = VISIBLE_GPUS.numbers
        if selected and min(selected) != _current.number:
            raise FailedPreconditionError(
                f"This process uses GPU {_current.number}, {_current.device.name}, already, so it can't "
                f"use GPU {min(selected)}. Call df.config.set_visible_devices before the GPU is used, or in "
                "another process."
            )
        return _current.device


def _require_groups(device: cl.Device) -> None:
    if device.max_work_group_size < LARGEST_GROUP:
        raise FailedPreconditionError(
            f"The OpenCL device {device.name.strip()} has groups of at most {device.max_work_group_size} "
            f"work-items, and kernels have groups of {LARGEST_GROUP}. Make another device visible with "
            "df.config.set_visible_devices, or use another backend."
        )


def devices() -> list[cl.Device]:
    """The devices of the selected types, in the order of the drivers.

    Raises:
        InvalidArgumentError: ``DUALFLOW_OPENCL`` has another value than those documented.
    """
    selected = os.environ.get(SETTING) or SETTINGS[0]
    if selected not in SETTINGS:
        raise InvalidArgumentError(f"{SETTING}={selected!r} is none of {', '.join(SETTINGS)}.")
    available = [device for platform in _platforms() for device in platform.get_devices()]
    if selected == "all":
        return available
    return [device for device in available if not device.type & cl.device_type.CPU]


def no_device_message() -> str:
    """Why there is no device, and what to install or to set."""
    if not _platforms():
        return (
            "There is no OpenCL driver. Install that of your GPU's vendor (on Debian nvidia-opencl-icd, "
            "intel-opencl-icd or mesa-opencl-icd), or pocl-opencl-icd, which runs on CPUs. If one is "
            "installed, set OCL_ICD_VENDORS=/etc/OpenCL/vendors."
        )
    names = [device.name.strip() for platform in _platforms() for device in platform.get_devices()]
    return f"OpenCL has no GPU, only {names}. Set {SETTING}=all to run kernels on such a device."


def _platforms() -> list[cl.Platform]:
    try:
        return list(cl.get_platforms())
    except cl.LogicError:  # the loader has no driver
        return []
