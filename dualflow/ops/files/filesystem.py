"""Files and folders with TensorFlow's ``gfile`` interface, by functions of the operating system."""

from __future__ import annotations

import glob as globbing
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from dualflow.core.records import dataclass
from dualflow.core.status_errors import AlreadyExistsError
from dualflow.core.system_errors import system_errors
from dualflow.core.tracebacks import entry, make_entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import TensorLike

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The length of a file in bytes, the time of its last change, and whether it is a folder."""

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
        """A context whose errors name the file: those of the system, and text that is no UTF-8."""
        try:
            with system_errors(self.name):
                yield
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"{os.fsdecode(self.name)} is no text in UTF-8: {error}. Open it in mode 'rb' to read bytes."
            ) from None

    @entry
    def read(self, n: int = -1) -> Any:
        """The next ``n`` characters or bytes, or all that follow.

        Args:
            n: their number; -1 for all.
        """
        with self._text_errors():
            return self._opened().read(n)

    @entry
    def readline(self) -> Any:
        """The next line; nothing at the end."""
        with self._text_errors():
            return self._opened().readline()

    @entry
    def readlines(self) -> list[Any]:
        """The lines from the current position to the end of the file."""
        with self._text_errors():
            lines: list[Any] = self._opened().readlines()
            return lines

    @entry
    def write(self, file_content: TensorLike) -> None:
        """Write text, or bytes if the mode has "b".

        Args:
            file_content: the text or bytes.
        """
        with system_errors(self.name):
            self._opened().write(file_content)

    @entry
    def seek(self, offset: int, whence: int = 0) -> None:
        """Set the position for reading or writing.

        Args:
            offset: the position, in bytes.
            whence: 0 for one from the start, 1 from the present position, 2 from the end.
        """
        self._opened().seek(offset, whence)

    @entry
    def tell(self) -> int:
        """The position for reading or writing."""
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
        """Write buffered content to the file."""
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
    """Whether a file or a folder exists.

    Args:
        path: its name.

    Returns:
        A bool.

    Raises:
        TypeError: ``path`` is not a path.

    >>> import dualflow as df
    >>> df.io.gfile.exists("/no/such/file")
    False
    """
    return os.path.exists(path)


def isdir(path: Path) -> bool:
    """Whether a name is that of a folder.

    Args:
        path: the name.

    Returns:
        A bool.

    Raises:
        TypeError: ``path`` is not a path.

    >>> import dualflow as df
    >>> df.io.gfile.isdir("/")
    True
    """
    return os.path.isdir(path)


def glob(pattern: str | bytes | os.PathLike[Any] | Sequence[str | bytes | os.PathLike[Any]]) -> list[str]:
    """The sorted names of the files that match a pattern, or one of a list of patterns.

    Args:
        pattern: a pattern as :mod:`glob` takes it, or a list of them.

    Returns:
        A list of names.

    Raises:
        TypeError: a pattern is not a path.

    >>> import dualflow as df, tempfile
    >>> df.io.gfile.glob(tempfile.mkdtemp() + "/*.txt")
    []
    """
    several = [pattern] if isinstance(pattern, str | bytes | os.PathLike) else pattern
    names = [os.fsdecode(each) for each in several]
    return sorted({path for name in names for path in globbing.glob(name, include_hidden=True)})


def join(path: Path, *paths: Path) -> Any:
    """The name of a file in a folder: ``os.path.join``.

    Args:
        path: the folder.
        *paths: the names in it.

    Returns:
        A name of the same type.

    Raises:
        TypeError: an argument is not a path.

    >>> import dualflow as df
    >>> df.io.gfile.join("/tmp", "letter.txt")
    '/tmp/letter.txt'
    """
    join_any: Any = os.path.join  # which takes all strings, or all bytes
    return join_any(path, *paths)


def listdir(path: Path) -> list[str]:
    """The names in a folder.

    Args:
        path: the folder.

    Returns:
        A list of names.

    Raises:
        NotFoundError: there is no such folder.

    >>> import dualflow as df, tempfile
    >>> df.io.gfile.listdir(tempfile.mkdtemp())
    []
    """
    if not os.path.isdir(path):
        raise NotFoundError(f"Could not find directory {os.fsdecode(path)}.")
    with system_errors(path):
        return [os.fsdecode(name) for name in os.listdir(path)]


def makedirs(path: Path) -> None:
    """Create a folder and its parents; an existing one is left as it is.

    Args:
        path: the folder.

    Returns:
        None.

    Raises:
        FailedPreconditionError: a parent is a file.
        PermissionDeniedError: it may not be created.

    >>> import dualflow as df, tempfile
    >>> folder = tempfile.mkdtemp() + "/a/b"
    >>> df.io.gfile.makedirs(folder)
    >>> df.io.gfile.isdir(folder)
    True
    """
    with system_errors(path):
        os.makedirs(path, exist_ok=True)


def mkdir(path: Path) -> None:
    """Create a folder; an existing one is left as it is.

    Args:
        path: the folder.

    Returns:
        None.

    Raises:
        NotFoundError: the parent folder does not exist.

    >>> import dualflow as df, tempfile
    >>> folder = tempfile.mkdtemp() + "/a"
    >>> df.io.gfile.mkdir(folder)
    >>> df.io.gfile.isdir(folder)
    True
    """
    if not os.path.isdir(path):
        with system_errors(path):
            os.mkdir(path)


def remove(path: Path) -> None:
    """Remove a file.

    Args:
        path: the file.

    Returns:
        None.

    Raises:
        NotFoundError: there is none.
        FailedPreconditionError: it is a folder.

    >>> import dualflow as df, tempfile
    >>> path = tempfile.mkdtemp() + "/letter.txt"
    >>> df.io.write_file(path, "Dear reader")
    >>> df.io.gfile.remove(path)
    >>> df.io.gfile.exists(path)
    False
    """
    if os.path.isdir(path) and not os.path.islink(path):
        raise FailedPreconditionError(f"{os.fsdecode(path)} is a folder; remove it with rmtree.")
    with system_errors(path):
        os.remove(path)


def rmtree(path: Path) -> None:
    """Remove a folder and all of its contents.

    Args:
        path: the folder.

    Returns:
        None.

    Raises:
        NotFoundError: there is none.

    >>> import dualflow as df, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> df.io.gfile.rmtree(folder)
    >>> df.io.gfile.exists(folder)
    False
    """
    with system_errors(path):
        shutil.rmtree(path)


def copy(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Copy a file.

    Args:
        src: the file.
        dst: the name of the copy.
        overwrite: whether to replace an existing file.

    Returns:
        None.

    Raises:
        NotFoundError: ``src`` is not there.
        AlreadyExistsError: ``dst`` is, and ``overwrite`` is False.

    >>> import dualflow as df, tempfile
    >>> path = tempfile.mkdtemp() + "/letter.txt"
    >>> df.io.write_file(path, "Dear reader")
    >>> df.io.gfile.copy(path, path + ".copy")
    >>> df.io.read_file(path + ".copy").numpy()
    b'Dear reader'
    """
    _check_free(dst, overwrite)
    with system_errors(src):
        shutil.copyfile(src, dst)


def rename(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Rename a file or a folder.

    Args:
        src: its name.
        dst: the new name.
        overwrite: whether to replace an existing file.

    Returns:
        None.

    Raises:
        NotFoundError: ``src`` is not there.
        AlreadyExistsError: ``dst`` is, and ``overwrite`` is False.

    >>> import dualflow as df, tempfile
    >>> path = tempfile.mkdtemp() + "/letter.txt"
    >>> df.io.write_file(path, "Dear reader")
    >>> df.io.gfile.rename(path, path + ".old")
    >>> df.io.gfile.exists(path)
    False
    """
    _check_free(dst, overwrite)
    with system_errors(src):
        os.replace(src, dst)


def _check_free(path: Path, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        raise AlreadyExistsError(f"{os.fsdecode(path)} already exists; give overwrite=True to replace it.")


def stat(path: Path) -> FileStatistics:
    """The length of a file, the time of its last change, and whether it is a folder.

    Args:
        path: the file.

    Returns:
        A :class:`FileStatistics`.

    Raises:
        NotFoundError: there is none.

    >>> import dualflow as df, tempfile
    >>> df.io.gfile.stat(tempfile.mkdtemp()).is_directory
    True
    """
    with system_errors(path):
        status = os.stat(path)
    return FileStatistics(status.st_size, status.st_mtime_ns, os.path.isdir(path))


def walk(
    top: Path, topdown: bool = True, onerror: Callable[[OSError], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """A folder and its subfolders, each with the names of its folders and of its files: ``os.walk``.

    Args:
        top: the folder.
        topdown: whether a folder comes before its subfolders.
        onerror: a function of the OSError of a folder that can't be listed; None to skip it.

    Returns:
        An iterator over tuples ``(folder, names of folders, names of files)``.

    Raises:
        TypeError: ``top`` is not a path.

    >>> import dualflow as df, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> list(df.io.gfile.walk(folder)) == [(folder, [], [])]
    True
    """
    return os.walk(os.fsdecode(top), topdown, onerror)


def get_registered_schemes() -> list[str]:
    """The prefixes of file names: the operating system's files have none. Raises nothing.

    Returns:
        A list of strings.

    >>> import dualflow as df
    >>> df.io.gfile.get_registered_schemes()
    ['']
    """
    return [""]


make_entries(globals())
