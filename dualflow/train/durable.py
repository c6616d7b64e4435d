"""Files that survive a crash: written to a temporary name, flushed to the disk, and then renamed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

from dualflow.core.atomic_files import AtomicFile, sync_folder
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from dualflow.core.status_errors import PermissionDeniedError
from dualflow.core.system_errors import kind_of
from dualflow.function.errors import here


def checked_path(path: str | os.PathLike[str]) -> str:
    """``path`` as a string, checked to be a possible path of a checkpoint.

    Raises:
        InvalidArgumentError: it is empty, or has a null character.
    """
    text = os.fspath(path)
    if not text or "\0" in text:
        raise InvalidArgumentError(
            f"A checkpoint can't be saved at {text!r}: give the path of a folder and a name, such as "
            f"'checkpoints/ckpt'.{here()}"
        )
    return text


def replace_text(path: Path, text: str) -> None:
    """Replace the content of the file ``path`` by ``text``, atomically."""
    with AtomicFile(os.fspath(path)) as file:
        file.write(text.encode())


def sync_file(path: Path) -> None:
    """Flush the content of a file to the disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def make_folder(path: Path) -> None:
    """Create a folder and its parents, each flushed to the disk."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for created in missing:
        sync_folder(os.fspath(created.parent))


@contextmanager
def writing_in(path: Path) -> Iterator[Callable[[], bool]]:
    """A context with a shared lock on a folder, for writing files into it.

    It yields a function that tries to lock the folder until the block's end, and returns whether no other
    process writes there. Without file locks on the system, it returns False.
    """
    if sys.platform == "win32":
        yield lambda: False
        return
    number = os.open(path, os.O_RDONLY)
    try:
        shared = _try_lock(number, fcntl.LOCK_SH)
        yield lambda: shared and _try_lock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(number)


def _try_lock(number: int, kind: int) -> bool:
    try:
        fcntl.flock(number, kind)
    except OSError:  # another process writes there, or the file system has no locks
        return False
    return True


@contextmanager
def file_errors(operation: str) -> Iterator[None]:
    """A context in which system errors become dualflow's, which name ``operation`` and its outcome."""
    try:
        yield
    except OSError as error:
        text = f"{operation} failed: {error}. Earlier checkpoints are unchanged."
        kind = kind_of(error)
        if kind is ResourceExhaustedError:
            raise ResourceExhaustedError(f"{text} Free space, or save elsewhere.") from error
        if kind is PermissionDeniedError:
            raise PermissionDeniedError(f"{text} Save to a folder with write permission.") from error
        raise FailedPreconditionError(text) from error
