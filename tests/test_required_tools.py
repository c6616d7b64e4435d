"""A test that needs a program or package which is missing skips, and fails where .ci/run runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import required_tools
from required_tools import (
    DEBIAN,
    MUST_EXIST,
    require_installed,
    require_module,
    require_sanitizer,
    require_tool,
)


def test_installed_values_are_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clang = tmp_path / "clang"
    clang.write_text("#!/bin/sh\necho /library.a\n")
    clang.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert require_tool("clang") == str(clang)
    assert require_sanitizer("clang") == "/library.a"
    assert require_module("os.path").join("a", "b") == "a/b"


@pytest.mark.parametrize("needed", [require_tool, require_sanitizer])
def test_a_missing_program_skips_or_fails_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needed: object
) -> None:
    assert callable(needed)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(MUST_EXIST, raising=False)
    with pytest.raises(pytest.skip.Exception, match="clang is not installed: apt-get install clang"):
        needed("clang")
    monkeypatch.setenv(MUST_EXIST, "1")
    with pytest.raises(pytest.fail.Exception, match="clang is not installed: apt-get install clang"):
        needed("clang")


def test_a_compiler_without_its_sanitizer_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GCC and Clang print the name alone of a file that they don't have."""
    clang = tmp_path / "clang"
    clang.write_text('#!/bin/sh\necho "${1#-print-file-name=}"\n')
    clang.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(MUST_EXIST, "1")
    with pytest.raises(pytest.fail.Exception, match="libclang-rt-14-dev"):
        require_sanitizer("clang")


def test_a_missing_package_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MUST_EXIST, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"no_such_package\.part is not installed: pip install"):
        require_module("no_such_package.part")
    monkeypatch.setenv(MUST_EXIST, "1")
    with pytest.raises(pytest.fail.Exception, match=r"no_such_package\.part is not installed: pip install"):
        require_module("no_such_package.part")


def test_a_missing_package_of_other_processes_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)
    require_installed("this")
    assert "this" not in sys.modules
    monkeypatch.delenv(MUST_EXIST, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no_such_package is not installed: pip install"):
        require_installed("no_such_package")
    monkeypatch.setenv(MUST_EXIST, "1")
    with pytest.raises(pytest.fail.Exception, match="no_such_package is not installed: pip install"):
        require_installed("no_such_package")


def test_a_package_that_is_broken_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_package.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        require_module("broken_package")


def test_the_packages_of_all_missing_programs_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    command = [sys.executable, required_tools.__file__]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert set(printed) == {*DEBIAN.values(), *required_tools.LIBRARIES.values()}
