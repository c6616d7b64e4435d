"""Temporary files of unit tests, and assertions about containers, by the names of Abseil's tests."""

from __future__ import annotations

import shutil
import tempfile
import unittest
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


@dataclass(frozen=True, slots=True)
class TemporaryFile:
    """A file of a test.

    Attributes:
        full_path: its path.
    """

    full_path: str

    def __fspath__(self) -> str:
        return self.full_path

    def read_text(self, encoding: str = "utf8", errors: str = "strict") -> str:
        """The content of the file, as text."""
        return Path(self.full_path).read_text(encoding, errors)

    def read_bytes(self) -> bytes:
        """The content of the file, as bytes."""
        return Path(self.full_path).read_bytes()

    def write_text(self, text: str, mode: str = "w", encoding: str = "utf8", errors: str = "strict") -> None:
        """Replace the content of the file; with mode ``a`` append to it."""
        with open(self.full_path, mode, encoding=encoding, errors=errors) as file:
            file.write(text)

    def write_bytes(self, data: bytes, mode: str = "wb") -> None:
        """Replace the content of the file; with mode ``ab`` append to it."""
        with open(self.full_path, mode) as file:
            file.write(data)

    def open_text(self, mode: str = "rt", encoding: str = "utf8", errors: str = "strict") -> IO[Any]:
        """The file, opened as text."""
        return open(self.full_path, mode, encoding=encoding, errors=errors)

    def open_bytes(self, mode: str = "rb") -> IO[Any]:
        """The file, opened as bytes."""
        return open(self.full_path, mode)


@dataclass(frozen=True, slots=True)
class TemporaryFolder:
    """A temporary folder of a test.

    Attributes:
        full_path: its path.
    """

    full_path: str

    def __fspath__(self) -> str:
        return self.full_path

    def create_file(self, file_path: str | None = None, content: str | bytes | None = None) -> TemporaryFile:
        """A new file in the folder, with a name of its own unless ``file_path`` names it."""
        if file_path is None:
            descriptor, path = tempfile.mkstemp(dir=self.full_path)
            open(descriptor, "w").close()
        else:
            path = str(Path(self.full_path, file_path))
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content or b""
        Path(path).write_bytes(data)
        return TemporaryFile(path)

    def mkdir(self, dir_path: str | None = None) -> TemporaryFolder:
        """A new folder inside this one."""
        path = tempfile.mkdtemp(dir=self.full_path) if dir_path is None else Path(self.full_path, dir_path)
        Path(path).mkdir(parents=True, exist_ok=True)
        return TemporaryFolder(str(path))


class TemporaryFiles(unittest.TestCase):
    """Files and folders that are removed after each test, and assertions about containers."""

    def get_temp_dir(self) -> str:
        """A folder of the test, the same at each call, which is removed after it."""
        folder: str | None = getattr(self, "_folder", None)
        if folder is None:
            folder = self._folder = tempfile.mkdtemp()
            self.addCleanup(self._remove_folder)
        return folder

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        del self._folder

    def create_tempdir(self, name: str | None = None) -> TemporaryFolder:
        """A new folder in that of the test.

        Args:
            name: its name; None for a new one.
        """
        return TemporaryFolder(self.get_temp_dir()).mkdir(name)

    def create_tempfile(
        self, file_path: str | None = None, content: str | bytes | None = None
    ) -> TemporaryFile:
        """A new file in the folder of the test.

        Args:
            file_path: its name; None for a new one.
            content: what it holds: text or bytes; None for nothing.
        """
        return TemporaryFolder(self.get_temp_dir()).create_file(file_path, content)

    def assertLen(self, container: Sized, expected_len: int, msg: str | None = None) -> None:
        """Check the number of elements."""
        self.assertEqual(len(container), expected_len, msg)

    def assertEmpty(self, container: Sized, msg: str | None = None) -> None:
        """Check that there are no elements."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Sized, msg: str | None = None) -> None:
        """Check that there are elements."""
        self.assertNotEqual(len(container), 0, msg)

    def assertBetween(self, value: float, minv: float, maxv: float, msg: str | None = None) -> None:
        """Check that ``minv <= value <= maxv``."""
        self.assertGreaterEqual(value, minv, msg)
        self.assertLessEqual(value, maxv, msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:
        """Check how a text begins."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r}, {expected_start!r}")

    def assertEndsWith(self, actual: str, expected_end: str, msg: str | None = None) -> None:
        """Check how a text ends."""
        self.assertTrue(actual.endswith(expected_end), msg or f"{actual!r}, {expected_end!r}")

    def assertSameElements(
        self, expected_seq: Sequence[Any], actual_seq: Sequence[Any], msg: str | None = None
    ) -> None:
        """Check that two sequences have the same elements, in any order and number."""
        self.assertEqual(set(expected_seq), set(actual_seq), msg)

    def assertContainsSubset(
        self, expected_subset: Iterable[Any], actual_set: Iterable[Any], msg: str | None = None
    ) -> None:
        """Check that each element of the first container is in the second."""
        self.assertEqual(set(expected_subset) - set(actual_set), set(), msg)

    def assertNoCommonElements(
        self, expected_seq: Iterable[Any], actual_seq: Iterable[Any], msg: str | None = None
    ) -> None:
        """Check that no element of the first container is in the second."""
        self.assertEqual(set(expected_seq) & set(actual_seq), set(), msg)

    def assertContainsInOrder(self, strings: Sequence[str], target: str, msg: str | None = None) -> None:
        """Check that a text has parts in this order."""
        start = 0
        for part in strings:
            start = target.find(part, start)
            self.assertNotEqual(start, -1, msg or f"{part!r} is missing, or too early, in {target!r}")

    def assertSequenceAlmostEqual(
        self,
        expected_seq: Sequence[float],
        actual_seq: Sequence[float],
        places: int | None = None,
        msg: str | None = None,
        delta: float | None = None,
    ) -> None:
        """Check that the numbers of two sequences are almost equal, as ``assertAlmostEqual`` does."""
        self.assertEqual(len(expected_seq), len(actual_seq), msg)
        check: Any = self.assertAlmostEqual  # typed for one of places and delta, either of which may be None
        for expected, actual in zip(expected_seq, actual_seq, strict=True):
            check(expected, actual, places=places, msg=msg, delta=delta)
