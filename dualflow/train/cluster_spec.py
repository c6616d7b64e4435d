"""The tasks of a job: ``df.train.ClusterSpec``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The workers of a job, by the kind of task.

    Args:
        cluster: the addresses of the tasks of each kind, here the names of the workers' machines.

    >>> import dualflow as df
    >>> df.train.ClusterSpec({"worker": ["a", "b"]}).num_tasks("worker")
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
