"""Files that outlive a crash: written beside their place, brought to the disk, and only then put there."""

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
    """The path of a checkpoint, which ends in a name.

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
    """Give the file ``path`` the content ``text``: it has the old content or the new one, never a part."""
    with AtomicFile(os.fspath(path)) as file:
        file.write(text.encode())


def sync_file(path: Path) -> None:
    """Bring the content of a file to the disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def make_folder(path: Path) -> None:
    """Make a folder and those above it, each brought to the disk."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync_folder(os.fspath(made.parent))


@contextmanager
def writing_in(path: Path) -> Iterator[Callable[[], bool]]:
    """The block in which files are written into a folder.

    What it yields tells whether nobody else writes there, and keeps others from beginning until the block's
    end. It is False where the system has no locks to tell it by.
    """
    if sys.platform == "win32":
        yield lambda: False
        return
    number = os.open(path, os.O_RDONLY)
    try:
        shared = _locked(number, fcntl.LOCK_SH)
        yield lambda: shared and _locked(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(number)


def _locked(number: int, kind: int) -> bool:
    try:
        fcntl.flock(number, kind)
    except OSError:  # others write there, or the file system has no locks
        return False
    return True


@contextmanager
def explaining(doing: str) -> Iterator[None]:
    """The block in which an error of the system says what was being done, and what became of it."""
    try:
        yield
    except OSError as error:
        text = f"{doing} failed: {error}. What was saved before is as it was."
        kind = kind_of(error)
        if kind is ResourceExhaustedError:
            raise ResourceExhaustedError(f"{text} Make room, or save elsewhere.") from error
        if kind is PermissionDeniedError:
            raise PermissionDeniedError(f"{text} Save to a folder that this user may write to.") from error
        raise FailedPreconditionError(text) from error
