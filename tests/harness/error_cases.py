"""Tests of error messages: a table of wrong calls, and the error that each raises.

A test file derives a class from ``ErrorCases`` and sets ``cases``. The class then tests each case: the type
of the error, its message, and the frames of its traceback. One more test compares the cases with the
``raise`` statements of the package.
"""

from __future__ import annotations

import ast
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import pytest

import dualflow as df

PACKAGE = Path(df.__file__).parent
Call = Callable[[], Any]
GENERATED = "<string>"
"""The file name of code without a file: the ``__init__`` of a dataclass."""
Site = tuple[str, int, int]
"""The file of a ``raise``, and its first and last line."""


class Frames(Enum):
    """The frames that the traceback of an error may have, from the call of the case on."""

    OF_THE_TEST = "frames of the test's file alone"
    ENDING_IN_THE_TEST = "any frames, the last of which is of the test's file"
    NOT_OF_DUALFLOW = "frames of any file outside of dualflow"
    ANY = "any frames"


class ErrorCases:
    """Tests that each of ``cases`` raises its error, and that they reach each ``raise`` of ``raised_in``."""

    cases: ClassVar[Mapping[str, tuple[Any, ...]]]
    """A call, the type of its error, and regular expressions that its message and notes match.

    The first is for what is wrong, the second, if any, for what to do about it.
    """
    frames: ClassVar[Frames] = Frames.OF_THE_TEST
    internal: ClassVar[Iterable[str]] = ()
    """Cases that call internal functions: their tracebacks have frames of dualflow."""
    raised_in: ClassVar[Iterable[str]] = ()
    """Patterns for files of dualflow."""
    tested_elsewhere: ClassVar[Mapping[str, str]] = {}
    """Files of ``raised_in`` whose errors have no case here, and where their tests are."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", list(self.cases))

    def test_the_error_has_its_type_message_and_line(self, case: str) -> None:
        call, kind, what, *remedies = self.cases[case]
        with pytest.raises(kind, match=what) as caught:
            call()
        text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
        for remedy in remedies:
            assert re.search(remedy, text)
        frames = traceback.extract_tb(caught.value.__traceback__)[1:]
        files = [frame.filename for frame in frames if frame.filename != GENERATED]
        own = sys.modules[type(self).__module__].__file__
        if case in self.internal:
            return
        match self.frames:
            case Frames.OF_THE_TEST:
                assert set(files) <= {own}
            case Frames.ENDING_IN_THE_TEST:
                assert files[-1:] in ([], [own])
            case Frames.NOT_OF_DUALFLOW:
                assert [file for file in files if file.startswith(str(PACKAGE))] == []

    def test_every_raise_has_a_case(self) -> None:
        sites = raises_without_case(self.raised_in, [case[0] for case in self.cases.values()])
        assert [site for site in sites if site.split(":")[0] not in self.tested_elsewhere] == []


def raises_without_case(patterns: Iterable[str], calls: Iterable[Call]) -> list[str]:
    """Each ``raise`` of an error type of dualflow, in the files of ``patterns``, that no call reaches."""
    df.debugging.disable_traceback_filtering()
    try:
        reached = {place for call in calls for place in _places(call)}
    finally:
        df.debugging.enable_traceback_filtering()
    paths = []
    for pattern in patterns:
        matching = sorted(PACKAGE.glob(pattern))
        assert matching, f"dualflow has no file {pattern}"
        paths += matching
    return [
        f"{Path(file).relative_to(PACKAGE)}:{first}"
        for path in paths
        for file, first, last in _sites(path)
        if not any((file, line) in reached for line in range(first, last + 1))
    ]


def _sites(path: Path) -> Iterator[Site]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func)
            if name.endswith("Error") and name != "InternalError":
                yield str(path), node.lineno, node.end_lineno or node.lineno


def _places(call: Call) -> Iterator[tuple[str, int]]:
    """The file and line of the last frame of the error that ``call`` raises, and of those of its causes."""
    try:
        call()
    except Exception as raised:
        pending: list[BaseException | None] = [raised]
        while pending:
            error = pending.pop()
            if error is not None:
                frames = traceback.extract_tb(error.__traceback__)
                yield from [(frame.filename, frame.lineno or 0) for frame in frames[-1:]]
                pending += [error.__context__, error.__cause__]
