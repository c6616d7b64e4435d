"""Training that continues from its last checkpoint, and a worker that is killed while it runs.

``resumed_training.py FOLDER EPOCHS [RANK STEP SECONDS]``: worker RANK is killed SECONDS after STEP has begun.
A line of each step goes to the worker's file in FOLDER: its number, the loss, and the worker's rows.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import dualflow as df

ROWS, BATCH, SAVED_EACH = 48, 8, 3
folder, epochs = Path(sys.argv[1]), int(sys.argv[2])
strategy = df.distribute.MultiWorkerMirroredStrategy(timeout=60.0)
rank = strategy.cluster_resolver.task_id
killed_rank, killed_step, delay = [float(x) for x in sys.argv[3:]] or (-1.0, 0.0, 0.0)

rng = np.random.default_rng(0)
data = (
    np.arange(ROWS),
    rng.normal(size=(ROWS, 8)).astype(np.float32),
    rng.integers(0, 4, ROWS).astype(np.int32),
)
batches = df.data.Dataset.from_tensor_slices(data).shuffle(ROWS, seed=1).batch(BATCH).repeat(epochs)
iterator = iter(strategy.experimental_distribute_dataset(batches))
weights = df.Variable(rng.normal(size=(8, 4)).astype(np.float32))
number = df.Variable(0)


@df.function
def step(x: Any, labels: Any) -> Any:
    def replica(x: Any, labels: Any) -> Any:
        with df.GradientTape() as tape:
            errors = df.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x @ weights)
            loss = df.reduce_sum(errors) / BATCH
        gradient = tape.gradient(loss, weights)
        weights.assign_sub(df.distribute.get_replica_context().all_reduce("SUM", gradient))  # type: ignore[union-attr]
        number.assign_add(1)
        return loss

    return strategy.reduce("SUM", strategy.run(replica, args=(x, labels)))


def die() -> None:
    (folder / "killed").write_text(str(time.time()), encoding="utf-8")
    os.kill(os.getpid(), signal.SIGKILL)


checkpoint = df.train.Checkpoint(weights=weights, number=number, iterator=iterator)
manager = df.train.CheckpointManager(checkpoint, folder / "checkpoints", max_to_keep=2)
manager.restore_or_initialize()
with (folder / f"{rank}.lines").open("a", encoding="utf-8") as lines:
    for rows, x, labels in iterator:
        if rank == killed_rank and int(number) >= killed_step:
            killed_rank = -1
            threading.Timer(delay, die).start()
        loss = step(x, labels)
        line = {"step": int(number), "loss": float(loss).hex(), "rows": rows.numpy().tolist()}
        print(json.dumps(line), file=lines, flush=True)
        if int(number) % SAVED_EACH == 0:
            manager.save()
