"""Groups of workers, which exchange arrays by MPI."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.dtypes import DType
from dualflow.core.library_functions import function_address
from dualflow.core.locks import imported
from dualflow.core.spec import TensorSpec
from dualflow.core.status_errors import AbortedError
from dualflow.distribute.collective_progress import MAX_DYNAMIC_SIZES, Progress
from dualflow.distribute.monitor import report_interval
from dualflow.ops.op_kinds import Collective, CollectiveCall

LOCAL_PART_BYTES: Final = 1 << 22
"""The size of the parts of a sum on one machine: MPI adds 40 MB in half the time if they stay in caches."""
NETWORK_PART_BYTES: Final = 1 << 30
"""The size of the parts between machines, where each part takes the latency of all messages once more."""
MAX_BLOCK: Final = (1 << 31) - 1
"""The number of elements of a block that one MPI call scatters or gathers."""
_NATIVE: Final = "bBhHiIlLqQfdFD"
"""Characters of the dtypes that MPI adds; narrower floats are added as float32."""
_MOVED: Final = {1: "B", 2: "H", 4: "I", 8: "Q", 16: "D"}
"""Characters of the dtypes as which MPI gathers elements of 1 to 16 bytes, without reading them."""
_FUNCTIONS: Final = {
    Collective.ALL_REDUCE: "MPI_Allreduce",
    Collective.REDUCE_SCATTER: "MPI_Reduce_scatter_block",
    Collective.ALL_GATHER: "MPI_Allgather",
    Collective.ALL_GATHER_ROWS: "MPI_Allgatherv",
    Collective.ROW_COUNTS: "MPI_Allgather",
}
"""The functions of MPI by which machine code exchanges."""
_ADDITIONS: Final = (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER)
_NOTHING: Final = np.empty(0, np.uint8)


class OneWorker:
    """The group of a program that trains alone, in which nothing is exchanged."""

    size: Final = 1
    rank: Final = 0

    def all_reduce(self, array: Array) -> Array:
        return array.copy()

    def native(
        self, collective: Collective, dtype: DType, shape: tuple[int | None, ...]
    ) -> CollectiveCall | None:
        return None

    def row_counts(self, own: Array, rows: TensorSpec) -> Array:
        return own.copy()

    def all_gather(self, array: Array, counts: Array) -> Array:
        return array.copy()

    def reduce_scatter_block(self, array: Array) -> Array:
        return array.copy()

    def all_gather_block(self, array: Array) -> Array:
        return array.copy()

    def broadcast(self, array: Array) -> Array:
        return array

    def __repr__(self) -> str:
        return "<group of 1 worker>"


class WorkerGroup:
    """Workers that exchange arrays through a communicator of mpi4py.

    One collective runs at a time; the order of collectives is the same for all workers.

    Args:
        communicator: the communicator.
        on_one_machine: whether the workers share memory.
    """

    def __init__(self, communicator: Any, *, on_one_machine: bool) -> None:
        self._communicator = communicator
        self._part_bytes = LOCAL_PART_BYTES if on_one_machine else NETWORK_PART_BYTES
        self.progress: Final = Progress()
        self.size: Final[int] = communicator.size
        self.rank: Final[int] = communicator.rank

    def all_reduce(self, array: Array) -> Array:
        """The sum of the workers' arrays, of one shape; the same bits for the same number of workers."""
        source = np.ascontiguousarray(array).reshape(array.shape)
        result = np.empty_like(source)
        with self._collective("all_reduce", array):
            for part in self._parts(source.size, source.itemsize):
                self._communicator.Allreduce(source.reshape(-1)[part], result.reshape(-1)[part])
        return result

    def native(
        self, collective: Collective, dtype: DType, shape: tuple[int | None, ...]
    ) -> CollectiveCall | None:
        """The call of the MPI library that machine code runs for a collective; None if there is none.

        The library is the one that mpi4py has loaded. A size that is None is dynamic.
        """
        function, character = _address(_FUNCTIONS[collective]), _character(collective, dtype)
        if not function or not self.progress.address or character is None:
            return None
        signature = self._signature(collective, dtype, shape)
        if signature is None:
            return None
        mpi = imported("mpi4py.MPI")
        return CollectiveCall(
            collective,
            function,
            signed_word(mpi.Datatype.fromcode(character).handle),
            signed_word(mpi.SUM.handle),
            signed_word(self._communicator.handle),
            self.progress.address,
            signature,
            self._part_bytes,
            mpi.ERR_COUNT,
            self.collective_error,
            self.progress.native_spans,
        )

    def _signature(self, collective: Collective, dtype: DType, shape: tuple[int | None, ...]) -> int | None:
        """The signature of a collective of machine code; None if it can't run a collective of that shape."""
        progress, name = self.progress, collective.name.lower()
        if collective is Collective.ROW_COUNTS:
            return progress.signature_of_rows(dtype.dtype, len(shape))
        if collective is Collective.ALL_GATHER_ROWS:
            row = [size for size in shape[1:] if size is not None]
            if len(row) < len(shape) - 1:
                return None
            return progress.signature("all_gather", dtype.dtype, (0, *row), any_length=True)
        sizes = [size for size in shape if size is not None]
        if len(sizes) < len(shape):
            if collective is not Collective.ALL_REDUCE or len(shape) - len(sizes) > MAX_DYNAMIC_SIZES:
                return None
            return progress.template(name, dtype.dtype, shape)
        if collective is not Collective.ALL_REDUCE and math.prod(sizes) > MAX_BLOCK:
            return None
        return progress.signature(name, dtype.dtype, tuple(sizes))

    def collective_error(self) -> Exception:
        """The error of the collective that has failed in machine code."""
        text = imported("mpi4py.MPI").Get_error_string(self.progress.code)
        return self._error(self.progress.description(), text)

    def row_counts(self, own: Array, rows: TensorSpec) -> Array:
        """The numbers of rows that the workers gather next, of tensors of the dtype and rank of ``rows``."""
        result = np.empty(self.size, np.int64)
        with self._counted(self.progress.signature_of_rows(rows.dtype.dtype, len(rows.shape))):
            self._communicator.Allgather(own.astype(np.int64), result)
        return result

    def all_gather(self, array: Array, counts: Array) -> Array:
        """The workers' arrays, concatenated along the first axis; ``counts`` has the sizes of this axis."""
        with self._collective("all_gather", array, any_length=True):
            if array.dtype.hasobject:
                return np.concatenate(self._communicator.allgather(array))
            source = np.ascontiguousarray(array)
            result = np.empty((counts.sum(), *array.shape[1:]), array.dtype)
            row = result.itemsize * math.prod(array.shape[1:])
            self._communicator.Allgatherv(_bytes(source), [_bytes(result), [int(n) * row for n in counts]])
        return result

    def reduce_scatter_block(self, array: Array) -> Array:
        """This worker's block of the sum of the workers' arrays, of as many blocks as there are workers."""
        source = np.ascontiguousarray(array)
        result = np.empty((len(array) // self.size, *array.shape[1:]), array.dtype)
        with self._collective("reduce_scatter", array):
            self._communicator.Reduce_scatter_block(source, result)
        return result

    def all_gather_block(self, array: Array) -> Array:
        """The workers' arrays of one shape, concatenated along the first axis."""
        source = np.ascontiguousarray(array)
        result = np.empty((len(array) * self.size, *array.shape[1:]), array.dtype)
        with self._collective("all_gather", array):
            self._communicator.Allgather(_bytes(source), _bytes(result))
        return result

    def broadcast(self, array: Array) -> Array:
        """The first worker's array; the others' have its shape and dtype."""
        with self._collective("broadcast", array):
            if array.dtype.hasobject:
                shared: Array = self._communicator.bcast(array)
                return shared
            result = np.array(array, order="C")
            for part in self._parts(result.nbytes, 1):
                self._communicator.Bcast(_bytes(result)[part])
        return result

    def write_once(self, path: str, write: Callable[[], None]) -> None:
        """Call ``write`` in the first worker, and in workers whose path differs from the first worker's.

        It returns when the first worker has written, or raises its error in all workers. No worker writes
        before all have called it, so what they have read from the folder before is the same.
        """
        path, error = os.path.abspath(path), None
        with self._collective("a write to files", _NOTHING):
            paths = self._communicator.allgather(path)
            try:
                if self.rank == 0 or path != paths[0]:
                    write()
            except Exception as caught:
                error = caught
            first_error = self._communicator.bcast(error)
        if error is not None or first_error is not None:
            raise error or first_error

    def _parts(self, count: int, itemsize: int) -> Iterator[slice]:
        """The parts of ``count`` elements that are exchanged one after another."""
        length = self._part_bytes // itemsize
        for begin in range(0, max(count, 1), length):
            yield slice(begin, min(begin + length, count))

    def _collective(
        self, kind: str, array: Array, *, any_length: bool = False
    ) -> AbstractContextManager[None]:
        """A context manager around a collective of arrays, which records its progress for the monitor."""
        signature = self.progress.signature(kind, array.dtype, array.shape, any_length=any_length)
        return self._counted(signature)

    @contextmanager
    def _counted(self, signature: int) -> Iterator[None]:
        """A context manager around a collective with this signature."""
        progress = self.progress
        with progress.lock:
            progress.begin(signature)
            try:
                yield
            except imported("mpi4py.MPI").Exception as error:
                raise self._error(progress.description(), str(error)) from None
            progress.finish()

    def _error(self, collective: str, cause: str) -> AbortedError:
        """The error of a collective that has failed, after a time in which the monitor may end the job."""
        time.sleep(3 * report_interval(self.size))
        return AbortedError(
            f"Worker {self.rank} failed in collective {self.progress.begun}, {collective}: {cause}. All "
            "workers must run the same functions on tensors of the same shapes."
        )

    def __repr__(self) -> str:
        return f"<group of {self.size} workers>"


@functools.cache
def _address(name: str) -> int:
    """The address of a function of the MPI library that mpi4py has loaded; 0 if it is not visible."""
    try:
        return function_address(ctypes.CDLL(imported("mpi4py.MPI").__file__), name)
    except OSError:
        return 0


def _character(collective: Collective, dtype: DType) -> str | None:
    """The character of the dtype of which MPI exchanges elements; None if it can't exchange ``dtype``."""
    if collective is Collective.ROW_COUNTS:
        return "q"  # int64, for rows of any dtype
    if collective in _ADDITIONS:
        return dtype.char if dtype.char in _NATIVE else None
    return _MOVED.get(dtype.size)


def signed_word(handle: int) -> int:
    """A handle of MPI as machine code stores it: MPICH's are ints of 32 bits, which mpi4py extends to 64.

    >>> signed_word(0xFFFF_FFFF_8400_0001) == -0x7BFF_FFFF
    True
    """
    return ctypes.c_int64(handle).value


def _bytes(array: Array) -> Array:
    """The memory of a contiguous array, for dtypes that MPI lacks too."""
    return array.reshape(-1).view(np.uint8)
