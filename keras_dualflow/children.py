"""Installs the import hook in processes that multiprocessing spawns.

It is imported after ``multiprocessing.spawn``, and adds an entry to the data of new processes. Unpickling the
entry executes :data:`keras_dualflow.startup.PROGRAM` there, before Keras can be imported. Forked processes
inherit the hook.
"""

from __future__ import annotations

from functools import wraps
from multiprocessing import spawn
from typing import Any

from keras_dualflow.startup import PROGRAM


class _ExecutedInChild:
    """An object whose unpickling executes :data:`PROGRAM`."""

    def __reduce__(self) -> Any:
        return exec, (PROGRAM, {})


_original = spawn.get_preparation_data


@wraps(_original)
def _preparation_data(name: str) -> dict[str, Any]:
    return {**_original(name), "keras_dualflow": _ExecutedInChild()}


spawn.get_preparation_data = _preparation_data
