"""Processes that multiprocessing starts anew take dualflow for TensorFlow as well.

Imported behind ``multiprocessing.spawn``, whose data for a new process then have one more entry: reading it
calls :func:`stand_in_quietly`, before the program's main module is loaded there. Forked processes have the
finder already.
"""

from __future__ import annotations

import sys
from functools import wraps
from multiprocessing import spawn
from typing import Any

from dualflow.cli.stand_in import stand_in_for_tensorflow


def stand_in_quietly() -> None:
    """Take dualflow for TensorFlow in this process, as its parent has said that it does."""
    stand_in_for_tensorflow(quiet=True)


class _CallInChild:
    """Is pickled as a call of :func:`stand_in_quietly`."""

    def __reduce__(self) -> Any:
        return stand_in_quietly, ()


_own = spawn.get_preparation_data


@wraps(_own)
def _preparation_data(name: str) -> dict[str, Any]:
    return {**_own(name), "dualflow": _CallInChild()}


spawn.get_preparation_data = _preparation_data
if sys.platform != "win32":
    from multiprocessing import forkserver

    # From Python 3.14 on, the server that forks would load the main module itself, without these data.
    forkserver.set_forkserver_preload([])
