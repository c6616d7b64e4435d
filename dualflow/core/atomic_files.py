"""Atomic replacement of files: readers, also after a crash, see the complete old or new content.

New content is written to a temporary file in the same folder, ``.NAME.HEX.tmp``. Its writer holds a lock on
it (``flock``), which the system releases when the process ends: a temporary file that can be locked was left
by a dead process, and the next writer in the folder removes it. Without such locks, nothing is removed.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Self

from dualflow.core.errors import FailedPreconditionError

if sys.platform != "win32":
    import fcntl

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_OLD: Final = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f]{16}\.tmp", re.DOTALL)
_LONGEST: Final = 200
"""The maximum length of a file's name in the name of its temporary file; systems allow 255 bytes."""
_BUFFER: Final = 1 << 20
_cleaned: Final[set[str]] = set()


class AtomicFile:
    """The new content of a file, which replaces the old one when the block ends without an error.

    Args:
        path: the file's name.
        mode: the file's permissions; by default those of a new file.
        clean: whether to remove leftovers even if this process has written into the folder before.

    Attributes:
        size: how many bytes were written.

    Raises:
        OSError: a file operation fails, here or in any method. No temporary file is left.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AtomicFile(f"{folder}/letter") as file:
    ...         file.write(b"Dear reader")
    ...     print(os.listdir(folder))
    ['letter']
    """

    def __init__(self, path: str, mode: int | None = None, clean: bool = True) -> None:
        self._number: int | None = None
        self._process = os.getpid()
        self._pending = bytearray()
        self._path = path
        self.size = 0
        folder = os.path.dirname(path)
        if clean or folder not in _cleaned:
            _cleaned.add(folder)
            remove_leftovers(folder)
        self._name, self._number = _created(path)
        if mode is not None and hasattr(os, "fchmod"):
            with self._or_discard():
                os.fchmod(self._number, mode)

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked process, and the file belongs to its parent."""
        return self._process != os.getpid()

    def write(self, content: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        before = len(self._pending)
        self._pending += content
        self.size += len(self._pending) - before
        if len(self._pending) >= _BUFFER:
            with self._or_discard():
                self._flush()

    def commit(self) -> None:
        """Flush the content to the disk, and replace the file by it."""
        with self._or_discard():
            number = self._flush()
            os.fsync(number)
            if os.name == "nt":
                self._close()
            os.replace(self._name, self._path)
            self._close()
        sync_folder(os.path.dirname(self._path))

    def discard(self) -> None:
        """Remove the temporary file, unless it was committed or belongs to another process."""
        if self._number is not None:
            if not self.is_inherited:
                with suppress(OSError):
                    os.unlink(self._name)
            with suppress(OSError):
                self._close()

    def _flush(self) -> int:
        if self._number is None or self.is_inherited:
            raise FailedPreconditionError(
                f"{self._path}: the file is complete, or was begun by another process."
            )
        content = memoryview(self._pending)
        while len(content):
            content = content[os.write(self._number, content) :]
        self._pending = bytearray()
        return self._number

    def _close(self) -> None:
        number, self._number = self._number, None
        self._pending = bytearray()
        if number is not None:
            os.close(number)

    @contextmanager
    def _or_discard(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *others: Any) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()

    def __del__(self) -> None:
        if getattr(self, "_number", None) is not None:
            self.discard()


def write_atomically(path: str, content: bytes | memoryview) -> None:
    """Write the content of a file atomically.

    Raises:
        OSError: it can't be written; its ``filename`` is ``path``, not that of the temporary file.
    """
    try:
        with AtomicFile(os.path.abspath(path)) as file:
            file.write(content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def remove_leftovers(folder: str) -> None:
    """Remove the temporary files in a folder whose writers have died."""
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return
    for name in filter(_TEMPORARY.fullmatch, names):
        path = os.path.join(folder, name)
        with suppress(OSError):
            number = os.open(path, _OLD)
            try:
                if stat.S_ISREG(os.fstat(number).st_mode) and _lock(number):
                    os.unlink(path)
            finally:
                os.close(number)


def sync_folder(folder: str) -> None:
    """Flush a folder's entries to the disk, on systems that support it."""
    if os.name != "posix":
        return
    number = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _created(path: str) -> tuple[str, int]:
    """The name and file descriptor of a new temporary file in the folder of ``path``, locked."""
    folder, name = os.path.split(path)
    short = os.fsdecode(os.fsencode(name)[:_LONGEST])
    while True:
        temporary = os.path.join(folder, f".{short}.{secrets.token_hex(8)}.tmp")
        number = os.open(temporary, _NEW, 0o666)
        try:
            if _lock(number) is not False and os.fstat(number).st_nlink:
                return temporary, number
        except BaseException:
            os.close(number)
            os.unlink(temporary)
            raise
        os.close(number)  # another writer removed it as a leftover before it was locked


def _lock(number: int) -> bool | None:
    """Lock a file: True, or False if another process has locked it; None if the system has no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
