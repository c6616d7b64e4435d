"""The tasks of a job as TensorFlow describes them: resolvers of one's own task, and ``TF_CONFIG``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.train.cluster_spec import ClusterSpec

TF_CONFIG: Final = "TF_CONFIG"
"""The environment variable by which TensorFlow's programs read their cluster."""
_TRAINING_TASKS: Final = ("chief", "worker")
"""The kinds of tasks that train; a chief comes before the workers."""


class ClusterResolver:
    """The base of resolvers: the kind and number of this task, and the addresses of all tasks.

    Attributes:
        task_type: the kind of this task, such as "worker"; None if there is no cluster.
        task_id: its number among the tasks of its kind; None if there is no cluster.
        rpc_layer: None, as MPI exchanges the tensors.

    >>> import dualflow as df
    >>> resolver = df.distribute.MultiWorkerMirroredStrategy().cluster_resolver
    >>> resolver.task_type, resolver.task_id
    ('worker', 0)
    """

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    def cluster_spec(self) -> ClusterSpec:
        """The tasks of the job.

        >>> import dualflow as df
        >>> df.distribute.MultiWorkerMirroredStrategy().cluster_resolver.cluster_spec().num_tasks("worker")
        1
        """
        return ClusterSpec({})

    def master(self, task_type: object = None, task_id: object = None, rpc_layer: object = None) -> str:
        """An empty string: there is no session to connect to.

        Args:
            task_type: ignored.
            task_id: ignored.
            rpc_layer: ignored.
        """
        return ""

    def num_accelerators(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        """An empty dict: workers have no accelerators.

        Args:
            args: ignored.
            kwargs: ignored.
        """
        return {}


class SimpleClusterResolver(ClusterResolver):
    """A resolver of the cluster and task that its arguments name.

    Args:
        cluster_spec: the tasks of the job.
        master: ignored.
        task_type: the kind of this task.
        task_id: its number among the tasks of its kind.
        environment: ignored.
        num_accelerators: ignored.
        rpc_layer: ignored.

    >>> import dualflow as df
    >>> spec = df.train.ClusterSpec({"worker": ["a", "b"]})
    >>> df.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=1).task_id
    1
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: object = None,
        rpc_layer: str | None = None,
    ) -> None:
        self.task_type, self.task_id = task_type, task_id
        self._cluster_spec = cluster_spec

    def cluster_spec(self) -> ClusterSpec:
        """The tasks of the job."""
        return self._cluster_spec


class TFConfigClusterResolver(ClusterResolver):
    """A resolver of the cluster and task in the environment variable ``TF_CONFIG``, read at each use.

    ``python -m dualflow launch`` and ``run`` set the variable for the workers of a job.

    Args:
        task_type: the kind of this task, in place of the variable's.
        task_id: its number, in place of the variable's.
        rpc_layer: ignored.
        environment: ignored.

    Raises:
        InvalidArgumentError: the variable isn't the JSON of a cluster and a task, when it is read.

    >>> import os
    >>> import dualflow as df
    >>> config = '{"cluster": {"worker": ["a", "b"]}, "task": {"type": "worker", "index": 1}}'
    >>> os.environ["TF_CONFIG"] = config
    >>> resolver = df.distribute.cluster_resolver.TFConfigClusterResolver()
    >>> resolver.task_type, resolver.task_id, resolver.cluster_spec().num_tasks("worker")
    ('worker', 1, 2)
    >>> del os.environ["TF_CONFIG"]
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._task_type, self._task_id = task_type, task_id

    @property
    def task_type(self) -> str | None:  # type: ignore[override]  # read when it is needed
        """The kind of this task; None without the variable."""
        return self._task_type or _tf_config().task_type

    @property
    def task_id(self) -> int | None:  # type: ignore[override]  # read when it is needed
        """Its number among the tasks of its kind; None without the variable."""
        return _tf_config().task_id if self._task_id is None else self._task_id

    def cluster_spec(self) -> ClusterSpec:
        """The tasks of the job; none without the variable."""
        return ClusterSpec(dict(_tf_config().cluster))


class WorkerResolver(ClusterResolver):
    """The position of this worker in its job, as MPI has assigned it.

    Args:
        rank: the number of this worker.
        hosts: the machine of each worker.
    """

    def __init__(self, rank: int, hosts: Sequence[str]) -> None:
        self.task_type, self.task_id = "worker", rank
        self._hosts = hosts

    def cluster_spec(self) -> ClusterSpec:
        """The workers of the job."""
        return ClusterSpec({"worker": list(self._hosts)})


@dataclass(frozen=True, slots=True)
class TFConfig:
    """The content of ``TF_CONFIG``.

    Attributes:
        cluster: the addresses of the tasks of each kind.
        task_type: the kind of this task.
        task_id: its number.
    """

    cluster: Mapping[str, list[str]]
    task_type: str | None
    task_id: int | None


def _tf_config() -> TFConfig:
    text = os.environ.get(TF_CONFIG, "")
    try:
        config = json.loads(text or "{}")
        cluster = {str(kind): list(map(str, tasks)) for kind, tasks in config.get("cluster", {}).items()}
        task = config.get("task", {})
        return TFConfig(cluster, task.get("type"), int(task["index"]) if "index" in task else None)
    except (ValueError, TypeError, AttributeError):
        raise InvalidArgumentError(
            f"The environment variable TF_CONFIG is no JSON of a cluster and a task: {text!r}. Leave it to "
            "python -m dualflow launch, which sets it for each worker."
        ) from None


def text_of_tf_config(rank: int, size: int) -> str:
    """The ``TF_CONFIG`` of a worker. MPI has the addresses, so the tasks have names only.

    >>> text_of_tf_config(1, 2)
    '{"cluster": {"worker": ["rank-0", "rank-1"]}, "task": {"type": "worker", "index": 1}}'
    """
    workers = [f"rank-{i}" for i in range(size)]
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})


def check_cluster(resolver: ClusterResolver, rank: int, size: int) -> None:
    """Compare the cluster of a resolver, or of ``TF_CONFIG``, with the job that MPI has started.

    Raises:
        FailedPreconditionError: they have unequal numbers of workers, or number this one differently.
    """
    tasks = resolver.cluster_spec().as_dict()
    numbered = [(kind, i) for kind in _TRAINING_TASKS for i in range(len(tasks.get(kind, ())))]
    if not numbered:
        return
    source = TF_CONFIG if isinstance(resolver, TFConfigClusterResolver) else "The cluster_resolver"
    if len(numbered) != size:
        raise FailedPreconditionError(
            f"{source} lists {len(numbered)} worker{'s' * (len(numbered) > 1)}, and this job has {size}: MPI "
            f"starts workers, not {TF_CONFIG}. Start the program with python -m dualflow launch -n "
            f"{len(numbered)}, or with mpiexec; or remove the cluster to train with {size}."
        )
    if (resolver.task_type, resolver.task_id) != numbered[rank]:
        raise FailedPreconditionError(
            f"{source} describes {resolver.task_type} {resolver.task_id}, and MPI has started this process "
            f"as worker {rank}. Leave {TF_CONFIG} to python -m dualflow launch, which sets it for each "
            "worker."
        )
