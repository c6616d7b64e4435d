"""The memory of a device: allocates buffers, keeps released ones, and counts the bytes in use.

Drivers take long to allocate, and a call needs the same sizes each time. So a released buffer is kept, and
the next request of its size class gets it. Since commands run in the order of the queue, a buffer may be
released, and used again, while kernels that use it are waiting.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import pyopencl as cl

from dualflow.core.errors import ResourceExhaustedError
from dualflow.core.locks import SharedLock

SMALLEST: Final = 256
"""The bytes of the smallest size class."""
_EXHAUSTED: Final = (
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
)
"""The statuses with which drivers report that there is no memory."""


class DeviceMemory:
    """The buffers of a context.

    Attributes:
        in_use: the bytes of the buffers that are allocated and not released.
        kept: the bytes of released buffers.
        largest: the bytes of the largest buffer.
        total: the bytes of all buffers together. Drivers grant more, and fail when kernels use the memory.
    """

    def __init__(self, context: cl.Context, device_name: str) -> None:
        self._context, self._device_name = context, device_name
        self._lock = SharedLock()
        self._free: defaultdict[int, list[cl.Buffer]] = defaultdict(list)
        self.in_use = 0
        self.kept = 0
        self.largest = int(min(device.max_mem_alloc_size for device in context.devices))
        self.total = int(min(device.global_mem_size for device in context.devices))

    @property
    def available(self) -> int:
        """The bytes of the largest buffer that can be allocated now."""
        return max(min(self.largest, self.total - self.in_use), 0)

    def allocate(self, nbytes: int, purpose: str) -> cl.Buffer:
        """A buffer of at least ``nbytes``, for ``purpose``, which an error names.

        Raises:
            ResourceExhaustedError: the device has no memory for it, even without the kept buffers, or has no
                buffers as large.
        """
        with self._lock.lock:
            size = min(size_class(nbytes), max(nbytes, self.available))
            free = self._free[size]
            if free:
                self.kept -= size
                buffer = free.pop()
            else:
                buffer = self._new(size, nbytes, purpose)
            self.in_use += size
            return buffer

    def release(self, buffer: cl.Buffer) -> None:
        """Keep a buffer for later requests."""
        with self._lock.lock:
            self._free[buffer.size].append(buffer)
            self.in_use -= buffer.size
            self.kept += buffer.size

    def trim(self) -> None:
        """Return the kept buffers to the driver."""
        with self._lock.lock:
            for buffers in list(self._free.values()):  # a collected executable may release its constants
                for buffer in buffers:
                    buffer.release()
            self._free.clear()
            self.kept = 0

    def _new(self, size: int, nbytes: int, purpose: str) -> cl.Buffer:
        for trims in (True, False):
            try:
                if size <= self.largest and self.in_use + self.kept + size <= self.total:
                    return self._buffer(size)
            except cl.Error as error:
                if not is_exhausted(error):
                    raise
            if trims:
                self.trim()
        limit = f", more than the {self.largest:,} of its largest buffer" if size > self.largest else ""
        raise self.exhausted(f"{nbytes:,} bytes were requested for {purpose}{limit}")

    def _buffer(self, size: int) -> cl.Buffer:
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)

    def exhausted(self, why: str) -> ResourceExhaustedError:
        """The error of a device without memory."""
        return ResourceExhaustedError(
            f"The device {self._device_name} is out of memory: {why}, and {self.in_use:,} of {self.total:,} "
            "bytes are in use. Compute in smaller parts."
        )


def is_exhausted(error: cl.Error) -> bool:
    """Whether a driver's error means that there is no memory."""
    return error.code in _EXHAUSTED


def size_class(nbytes: int) -> int:
    """The bytes of the buffer for a request: four sizes for each power of two.

    >>> [size_class(n) for n in (0, 256, 257, 1000, 1025)]
    [256, 256, 320, 1024, 1280]
    """
    step = SMALLEST // 4
    while step * 8 < nbytes:
        step *= 2
    return max(SMALLEST, -(-nbytes // step) * step)
