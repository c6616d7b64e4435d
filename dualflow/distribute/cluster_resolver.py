"""Resolvers of the tasks of a job: ``df.distribute.cluster_resolver``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.distribute.cluster import ClusterResolver as ClusterResolver
    from dualflow.distribute.cluster import SimpleClusterResolver as SimpleClusterResolver
    from dualflow.distribute.cluster import TFConfigClusterResolver as TFConfigClusterResolver

_publish(
    globals(),
    lazy={"dualflow.distribute.cluster": "ClusterResolver SimpleClusterResolver TFConfigClusterResolver"},
)
