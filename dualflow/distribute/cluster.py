"""The workers of a job as TensorFlow describes them: ``ClusterSpec`` and ``ClusterResolver``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The workers of a job, by the kind of task.

    Args:
        cluster: the addresses of the tasks of each kind, here the names of the workers' machines.

    >>> from dualflow.distribute.cluster import ClusterSpec
    >>> ClusterSpec({"worker": ["a", "b"]}).num_tasks("worker")
    2
    """

    cluster: dict[str, list[str]]

    @property
    def jobs(self) -> list[str]:
        """The kinds of tasks."""
        return list(self.cluster)

    def as_dict(self) -> dict[str, list[str]]:
        """The addresses of the tasks of each kind."""
        return {job: list(tasks) for job, tasks in self.cluster.items()}

    def num_tasks(self, job_name: str) -> int:
        """The number of tasks of a kind."""
        return len(self.cluster[job_name])

    def __bool__(self) -> bool:
        return bool(self.cluster)


class ClusterResolver:
    """The position of this worker in its job: its task and the addresses of all tasks, assigned by MPI.

    Args:
        rank: the number of this worker.
        hosts: the machine of each worker.

    >>> import dualflow as df
    >>> resolver = df.distribute.MultiWorkerMirroredStrategy().cluster_resolver
    >>> resolver.task_type, resolver.task_id
    ('worker', 0)
    """

    def __init__(self, rank: int, hosts: Sequence[str]) -> None:
        self.task_type = "worker"
        self.task_id = rank
        self.rpc_layer = None
        self._hosts = hosts

    def cluster_spec(self) -> ClusterSpec:
        """The workers of the job.

        >>> import dualflow as df
        >>> df.distribute.MultiWorkerMirroredStrategy().cluster_resolver.cluster_spec().num_tasks("worker")
        1
        """
        return ClusterSpec({"worker": list(self._hosts)})

    def num_accelerators(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        """An empty dict: workers have no accelerators.

        Args:
            args: ignored.
            kwargs: ignored.
        """
        return {}
