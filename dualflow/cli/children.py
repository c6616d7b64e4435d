"""Substitution of TensorFlow by dualflow in processes that multiprocessing spawns.

Imported after ``multiprocessing.spawn``, to whose data for a new process it adds an entry: unpickling it
calls :func:`stand_in_quietly`, before the program's main module is loaded there. Forked processes inherit the
finder.
"""

from __future__ import annotations

import sys
from functools import wraps
from multiprocessing import spawn
from typing import Any

from dualflow.cli.stand_in import stand_in_for_tensorflow, version_in_place


def stand_in_quietly(version: int) -> None:
    """Substitute dualflow for a version of TensorFlow in this process, without a message."""
    stand_in_for_tensorflow(version=version, quiet=True)


class _CallInChild:
    """An object that is unpickled by a call of :func:`stand_in_quietly`."""

    def __reduce__(self) -> Any:
        return stand_in_quietly, (version_in_place(),)


_original = spawn.get_preparation_data


@wraps(_original)
def _preparation_data(name: str) -> dict[str, Any]:
    return {**_original(name), "dualflow": _CallInChild()}


spawn.get_preparation_data = _preparation_data
if sys.platform != "win32":
    from multiprocessing import forkserver

    # From Python 3.14 on, the server that forks would load the main module itself, without these data.
    forkserver.set_forkserver_preload([])
