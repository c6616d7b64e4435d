"""Messages of a program by TensorFlow 1's names: ``v1.logging``, on Python's logger ``tensorflow``."""

from __future__ import annotations

import itertools
import logging as _logging
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from dualflow.core.namespace import publish as _publish
from dualflow.core.program_logger import get_logger as get_logger

DEBUG: Final = _logging.DEBUG
ERROR: Final = _logging.ERROR
FATAL: Final = _logging.CRITICAL
INFO: Final = _logging.INFO
WARN: Final = _logging.WARNING

_counters_lock: Final = threading.Lock()
_counters: Final[defaultdict[str, Iterator[int]]] = defaultdict(itertools.count)


def get_verbosity() -> int:
    """The level of :func:`set_verbosity`, WARN by default.

    >>> from dualflow.compat import v1
    >>> v1.logging.get_verbosity() == v1.logging.WARN
    True
    """
    return get_logger().getEffectiveLevel()


def set_verbosity(v: int | str) -> None:
    """Write only messages of level ``v`` and above: DEBUG, INFO, WARN, ERROR or FATAL."""
    get_logger().setLevel(v)


def log(level: int, msg: object, *args: object) -> None:
    """Write ``msg % args`` at ``level``."""
    get_logger().log(level, msg, *args, stacklevel=2)


def debug(msg: object, *args: object) -> None:
    """Write ``msg % args`` at level DEBUG."""
    get_logger().debug(msg, *args, stacklevel=2)


def info(msg: object, *args: object) -> None:
    """Write ``msg % args`` at level INFO."""
    get_logger().info(msg, *args, stacklevel=2)


def warn(msg: object, *args: object) -> None:
    """Write ``msg % args`` at level WARN."""
    get_logger().warning(msg, *args, stacklevel=2)


warning = warn


def error(msg: object, *args: object) -> None:
    """Write ``msg % args`` at level ERROR."""
    get_logger().error(msg, *args, stacklevel=2)


def fatal(msg: object, *args: object) -> None:
    """Write ``msg % args`` at level FATAL; the program continues."""
    get_logger().critical(msg, *args, stacklevel=2)


def log_if(level: int, msg: object, condition: object, *args: object) -> None:
    """Write ``msg % args`` at ``level`` if ``condition`` is true."""
    if condition:
        get_logger().log(level, msg, *args, stacklevel=2)


def log_every_n(level: int, msg: str, n: int, *args: object) -> None:
    """Write ``msg % args`` in the first of each ``n`` calls with this ``msg``."""
    if _count(msg) % n == 0:
        get_logger().log(level, msg, *args, stacklevel=2)


def log_first_n(level: int, msg: str, n: int, *args: object) -> None:
    """Write ``msg % args`` in the first ``n`` calls with this ``msg``."""
    if _count(msg) < n:
        get_logger().log(level, msg, *args, stacklevel=2)


def vlog(level: int, msg: object, *args: object) -> None:
    """Write ``msg % args`` at ``level``, an integer of Python's logging."""
    get_logger().log(level, msg, *args, stacklevel=2)


def TaskLevelStatusMessage(msg: object) -> None:
    """Write ``msg``, the state of a task, at level ERROR."""
    get_logger().error(msg, stacklevel=2)


def flush() -> None:
    """Write what handlers of the logger have buffered."""
    for handler in get_logger().handlers:
        handler.flush()


def _count(msg: str) -> int:
    """The number of earlier calls with ``msg``."""
    with _counters_lock:
        return next(_counters[msg])


_publish(globals(), internal=("Final", "Iterator", "defaultdict"))
