"""A program of two workers in which something goes wrong on the second one: ``faults.py FAULT``."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import dualflow as df

fault = sys.argv[1]
if fault == "version" and os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK")) == "1":
    df.version.DUALFLOW = "9.9"
strategy = df.distribute.MultiWorkerMirroredStrategy(timeout=8.0 if fault == "hang" else 60.0)
df.distribute.MirroredStrategy()  # which keeps the timeout
is_second = strategy.cluster_resolver.task_id == 1


@df.function
def step(x: Any) -> Any:
    return strategy.run(lambda: df.distribute.get_replica_context().all_reduce("SUM", x))  # type: ignore[union-attr]


for _ in range(3):
    step(df.ones([4]))
if is_second:
    match fault:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise ZeroDivisionError("a fault of the test")
        case "steps":
            sys.exit()
        case "shape":
            step(df.ones([5]))
        case "dtype":
            step(df.ones([4], df.float64))
        case "function":
            strategy.gather(df.ones([4]), axis=0)
        case "hang":
            time.sleep(1000)
while True:
    step(df.ones([4]))
