"""A program of two workers in which something goes wrong on the second one: ``faults.py FAULT [FORM]``.

FORM is that of the collectives: in a function of static sizes, in one of any size, or in a loop.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

import dualflow as df

fault, form = [*sys.argv[1:], "static"][:2]
if fault == "version" and os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK")) == "1":
    df.version.DUALFLOW = "9.9"
strategy = df.distribute.MultiWorkerMirroredStrategy(timeout=60.0)
is_second = strategy.cluster_resolver.task_id == 1
print("worker", strategy.cluster_resolver.task_id)


def total(x: Any) -> Any:
    return strategy.run(lambda: df.distribute.get_replica_context().all_reduce("SUM", x))  # type: ignore[union-attr]


@df.function
def repeated(x: Any, times: Any) -> Any:
    for _ in df.range(times):
        x = total(x)
    return x


def combine(x: Any, times: int) -> None:
    if form == "loop":
        repeated(x, times)
        return
    for _ in range(times):
        steps[form](x)


steps = {
    "static": df.function(total),
    "any-size": df.function(total, input_signature=[df.TensorSpec([None])]),
}
combine(df.ones([4]), 3)
if fault == "hang":  # after the first collectives, before which the workers compile
    df.distribute.MultiWorkerMirroredStrategy(timeout=2.0)
    df.distribute.MirroredStrategy()  # which keeps the timeout
if is_second:
    match fault:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise ZeroDivisionError("a fault of the test")
        case "steps":
            sys.exit()
        case "shape":
            combine(df.ones([5]), 1)
        case "dtype":
            combine(df.ones([4], df.float64), 1)
        case "function":
            strategy.gather(df.ones([4]), axis=0)
        case "hang":
            time.sleep(1000)
        case "interrupt":
            threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
combine(df.ones([4]), 1_000_000)
