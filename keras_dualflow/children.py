"""Processes that multiprocessing starts anew install the import hook as their parent has.

Imported after ``multiprocessing.spawn``, whose data for a new process then have one more entry: unpickling it
executes :data:`keras_dualflow.startup.PROGRAM` there, before anything imports Keras. Forked processes have
the hook already.
"""

from __future__ import annotations

from functools import wraps
from multiprocessing import spawn
from typing import Any

from keras_dualflow.startup import PROGRAM


class _ExecutedInChild:
    """Is pickled as a call that executes :data:`PROGRAM`."""

    def __reduce__(self) -> Any:
        return exec, (PROGRAM, {})


_original = spawn.get_preparation_data


@wraps(_original)
def _preparation_data(name: str) -> dict[str, Any]:
    return {**_original(name), "keras_dualflow": _ExecutedInChild()}


spawn.get_preparation_data = _preparation_data
