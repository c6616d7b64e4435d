"""The workers of the MPI job that this process belongs to."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any, Final

from dualflow import version
from dualflow.core.errors import FailedPreconditionError, NotFoundError
from dualflow.core.locks import SharedLock, imported
from dualflow.core.records import dataclass

_LAUNCHERS: Final = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, and srun --mpi=pmi2
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),  # srun --mpi=pmix
)
"""The environment variables by which launchers pass a worker its rank and the number of workers."""
_lock: Final = SharedLock()


@dataclass(frozen=True, slots=True)
class World:
    """The workers of a job.

    Attributes:
        rank: the number of this worker, from 0.
        size: the number of workers.
        communicator: mpi4py's communicator of all workers, for this package alone; None for one worker.
        hosts: the name of each worker's machine.
    """

    rank: int
    size: int
    communicator: Any
    hosts: tuple[str, ...]

    @property
    def on_one_machine(self) -> bool:
        """Whether all workers are on one machine."""
        return len(set(self.hosts)) == 1


ALONE: Final = World(0, 1, None, (platform.node(),))
"""The world of a program that no launcher has started."""
_worlds: Final[list[World]] = []
"""Empty, or the world of this process, once :func:`join` has joined it."""


def launcher_rank_and_size() -> tuple[int, int]:
    """This worker's rank and the number of workers, as the launcher has set them, without loading MPI.

    >>> launcher_rank_and_size()
    (0, 1)
    """
    for rank, size in _LAUNCHERS:
        if os.environ.get(rank, "").isdecimal() and os.environ.get(size, "").isdecimal():
            return int(os.environ[rank]), int(os.environ[size])
    return ALONE.rank, ALONE.size


def join() -> World:
    """The world of this process. The first call loads MPI if there are several workers.

    Raises:
        NotFoundError: mpi4py is not installed, and a launcher has started several workers.
        FailedPreconditionError: mpi4py belongs to another MPI than the launcher.
    """
    with _lock.lock:
        if not _worlds:
            _worlds.append(_joined_world())
        return _worlds[0]


def _joined_world() -> World:
    rank, size = launcher_rank_and_size()
    if size == 1 and "mpi4py.MPI" not in sys.modules:
        return ALONE
    try:
        mpi = imported("mpi4py.MPI")
    except ImportError as error:
        raise NotFoundError(
            f"Worker {rank} of {size} can't load MPI ({error}): pip install 'dualflow[mpi]'."
        ) from error
    communicator = mpi.COMM_WORLD
    if communicator.size < size:
        library = mpi.Get_library_version().partition("\n")[0].strip("\0 ")
        raise FailedPreconditionError(
            f"The launcher started {size} workers, but the MPI of mpi4py ({library}) has "
            f"{communicator.size}: they are different MPIs. Start the program with python -m dualflow "
            "launch, or with the mpiexec of that MPI."
        )
    if communicator.size == 1:
        return ALONE
    own = communicator.Dup()
    return World(own.rank, own.size, own, tuple(own.allgather(platform.node())))


def check_versions(world: World) -> None:
    """Compare the workers' versions of dualflow.

    Raises:
        FailedPreconditionError: they differ.
    """
    versions = world.communicator.allgather(version.DUALFLOW)
    for rank, other in enumerate(versions):
        if other != versions[0]:
            raise FailedPreconditionError(
                f"Worker {rank} runs dualflow {other}, and worker 0 runs {versions[0]}; install the same "
                "version for all."
            )
