"""Parts of batches, of which each replica trains on one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.trainers.data_adapters import data_adapter

import dualflow as df
from dualflow.distribute.row_shards import shard_rows
from keras_dualflow import replicas


@dataclass(frozen=True)
class BatchPart:
    """The rows of a batch that belong to this replica, and their fraction of all rows."""

    data: Any
    fraction: float


class PartAdapter(data_adapter.DataAdapter):  # type: ignore[misc]  # Keras has no types
    """The replica's parts of the batches of another adapter; all replicas iterate over the same batches.

    Args:
        adapter: the adapter of global batches, or of batches of this replica alone.
        strategy: the strategy.
        are_global: whether the batches are global.
    """

    def __init__(self, adapter: Any, strategy: Any, are_global: bool) -> None:
        self._adapter, self._are_global = adapter, are_global
        replica = strategy.experimental_distribute_values_from_function(lambda context: context).values[0]
        self._index, self._count = replica.replica_id_in_sync_group, replica.num_replicas_in_sync

    def get_numpy_iterator(self) -> Iterator[BatchPart]:
        """The replica's part of each batch."""
        return map(self._part, self._adapter.get_numpy_iterator())

    def _part(self, batch: Any) -> BatchPart:
        if not self._are_global:
            return BatchPart(batch, 1.0 / self._count)
        size = next(leaf.shape[0] for leaf in tree.flatten(batch) if leaf is not None)
        rows = shard_rows(size, self._index, self._count)
        own = tree.map_structure(lambda leaf: None if leaf is None else leaf[rows.start : rows.stop], batch)
        return BatchPart(own, len(rows) / size)

    @property
    def num_batches(self) -> Any:
        return self._adapter.num_batches

    @property
    def batch_size(self) -> Any:
        return self._adapter.batch_size

    @property
    def has_partial_batch(self) -> Any:
        return self._adapter.has_partial_batch

    @property
    def partial_batch_size(self) -> Any:
        return self._adapter.partial_batch_size

    def on_epoch_begin(self) -> None:
        self._adapter.on_epoch_begin()

    def on_epoch_end(self) -> None:
        self._adapter.on_epoch_end()


def share_shuffles(strategy: Any) -> None:
    """Let NumPy's global generator, by which Keras shuffles, draw the first worker's numbers."""
    kind, keys, position, has_gauss, gauss = np.random.get_state()
    state = np.array([*keys, position, has_gauss, gauss], np.float64)  # which represents 32 bits exactly
    with strategy.scope():
        shared = df.Variable(state).numpy()
    np.random.set_state((kind, shared[:-3].astype(np.uint32), int(shared[-3]), int(shared[-2]), shared[-1]))


def average_statistics(model: Any, strategy: Any) -> None:
    """Assign the means over all replicas to the model's statistics, such as those of batch normalization."""
    variables = [v for v in model.non_trainable_weights if "float" in v.dtype]
    means = strategy.reduce("MEAN", [v._value for v in variables]) if variables else []
    for variable, mean in zip(variables, means, strict=True):
        variable.assign(mean)


def combined_logs(model: Any, strategy: Any, logs: Any) -> Any:
    """The logs of a step over all replicas: the results of the model's metrics, or else means."""
    if not isinstance(logs, dict):
        return logs
    variables = [v for metric in model.metrics for v in metric.variables if v._strategy is strategy]
    with strategy.scope():
        with replicas.totals_of([v._value for v in variables], strategy):
            results = model.get_metrics_result()
        if set(results) == set(logs):
            return results
        return {name: strategy.reduce("MEAN", df.convert_to_tensor(value)) for name, value in logs.items()}
