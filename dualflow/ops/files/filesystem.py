"""Files and folders as TensorFlow's ``gfile`` shows them, on the operating system's own."""

from __future__ import annotations

import glob as globbing
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from dualflow.core.records import dataclass
from dualflow.core.status_errors import AlreadyExistsError
from dualflow.core.system_errors import system_errors
from dualflow.core.tracebacks import entry, make_entries

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """What is known of a file: its length in bytes, when it was changed, whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


class GFile:
    """A file, opened as ``open`` does; text is in UTF-8.

    Args:
        name: the file's name.
        mode: "r", "w", "a", and so on, with "b" for bytes.

    Raises:
        NotFoundError: there is no such file, when it is first read.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "letter")
    >>> with GFile(path, "w") as file:
    ...     file.write("Dear reader")
    >>> GFile(path).read()
    'Dear reader'
    """

    def __init__(self, name: Path, mode: str = "r") -> None:
        self.name = os.fspath(name)
        self.mode = mode
        self._file: Any = None

    def _opened(self) -> Any:
        if self._file is None:
            encoding = None if "b" in self.mode else "utf-8"
            with system_errors(self.name):
                self._file = open(self.name, self.mode, encoding=encoding)  # noqa: SIM115 (closed by close)
        return self._file

    @contextmanager
    def _text_errors(self) -> Iterator[None]:
        """A block whose errors name the file: those of the system, and text that is no UTF-8."""
        try:
            with system_errors(self.name):
                yield
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"{os.fsdecode(self.name)} is no text in UTF-8: {error}. Open it in mode 'rb' to read bytes."
            ) from None

    @entry
    def read(self, n: int = -1) -> Any:
        """The next ``n`` characters or bytes, or all that follow."""
        with self._text_errors():
            return self._opened().read(n)

    @entry
    def readline(self) -> Any:
        """The next line; nothing at the end."""
        with self._text_errors():
            return self._opened().readline()

    @entry
    def readlines(self) -> list[Any]:
        """All lines that follow."""
        with self._text_errors():
            lines: list[Any] = self._opened().readlines()
            return lines

    @entry
    def write(self, file_content: Any) -> None:
        """Write text, or bytes where the mode says so."""
        with system_errors(self.name):
            self._opened().write(file_content)

    @entry
    def seek(self, offset: int, whence: int = 0) -> None:
        """Go on at another place."""
        self._opened().seek(offset, whence)

    @entry
    def tell(self) -> int:
        """The place where reading or writing goes on."""
        return int(self._opened().tell())

    @entry
    def size(self) -> int:
        """The file's length in bytes."""
        self.flush()
        return stat(self.name).length

    @entry
    def seekable(self) -> bool:
        """Whether :meth:`seek` works."""
        return bool(self._opened().seekable())

    @entry
    def flush(self) -> None:
        """Hand what was written to the operating system."""
        if self._file is not None:
            with system_errors(self.name):
                self._file.flush()

    @entry
    def close(self) -> None:
        """End reading and writing."""
        if self._file is not None:
            with system_errors(self.name):
                self._file.close()
            self._file = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @entry
    def __iter__(self) -> Iterator[Any]:
        with self._text_errors():
            yield from self._opened()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self._file.close()


def exists(path: Path) -> bool:
    """Whether there is a file or a folder of this name."""
    return os.path.exists(path)


def isdir(path: Path) -> bool:
    """Whether this is a folder."""
    return os.path.isdir(path)


def glob(pattern: Any) -> list[str]:
    """The names of the files that match a pattern, or one of a list of patterns, sorted."""
    several = [pattern] if isinstance(pattern, str | bytes | os.PathLike) else pattern
    names = [os.fsdecode(each) for each in several]
    return sorted({path for name in names for path in globbing.glob(name, include_hidden=True)})


def join(path: Any, *paths: Any) -> Any:
    """A name in a folder: ``os.path.join``."""
    return os.path.join(path, *paths)


def listdir(path: Path) -> list[str]:
    """The names in a folder.

    Raises:
        NotFoundError: there is no such folder.
    """
    if not os.path.isdir(path):
        raise NotFoundError(f"Could not find directory {os.fsdecode(path)}.")
    with system_errors(path):
        return [os.fsdecode(name) for name in os.listdir(path)]


def makedirs(path: Path) -> None:
    """Make a folder, and those that it is in; nothing where it is there."""
    with system_errors(path):
        os.makedirs(path, exist_ok=True)


def mkdir(path: Path) -> None:
    """Make a folder; nothing where it is there.

    Raises:
        NotFoundError: what it is to be in is not there.
    """
    if not os.path.isdir(path):
        with system_errors(path):
            os.mkdir(path)


def remove(path: Path) -> None:
    """Remove a file.

    Raises:
        NotFoundError: there is none.
        FailedPreconditionError: it is a folder.
    """
    if os.path.isdir(path) and not os.path.islink(path):
        raise FailedPreconditionError(f"{os.fsdecode(path)} is a folder; remove it with rmtree.")
    with system_errors(path):
        os.remove(path)


def rmtree(path: Path) -> None:
    """Remove a folder and all that is in it.

    Raises:
        NotFoundError: there is none.
    """
    with system_errors(path):
        shutil.rmtree(path)


def copy(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Copy a file.

    Raises:
        NotFoundError: ``src`` is not there.
        AlreadyExistsError: ``dst`` is, and ``overwrite`` is False.
    """
    _check_free(dst, overwrite)
    with system_errors(src):
        shutil.copyfile(src, dst)


def rename(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Give a file or a folder another name.

    Raises:
        NotFoundError: ``src`` is not there.
        AlreadyExistsError: ``dst`` is, and ``overwrite`` is False.
    """
    _check_free(dst, overwrite)
    with system_errors(src):
        os.replace(src, dst)


def _check_free(path: Path, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        raise AlreadyExistsError(f"{os.fsdecode(path)} already exists; give overwrite=True to replace it.")


def stat(path: Path) -> FileStatistics:
    """What is known of a file.

    Raises:
        NotFoundError: there is none.
    """
    with system_errors(path):
        found = os.stat(path)
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(path))


def walk(
    top: Path, topdown: bool = True, onerror: Callable[[OSError], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """A folder and those in it, each with the names of its folders and of its files: ``os.walk``."""
    return os.walk(os.fsdecode(top), topdown, onerror)


def get_registered_schemes() -> list[str]:
    """What a name may begin with: files of the operating system have nothing before them."""
    return [""]


make_entries(globals())
