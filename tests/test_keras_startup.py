"""``python -m dualflow keras``: the file with which a plain ``import keras`` takes this backend."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import dualflow as df
from dualflow.cli.call import CommandError
from dualflow.cli.keras_startup import ACTIONS, CONTENT, run_action

FILE = "dualflow_keras.pth"
ROOT = os.path.dirname(os.path.dirname(df.__file__))


@pytest.mark.parametrize("before", [None, "import keras_dualflow.startup; keras_dualflow.startup.watch()\n"])
def test_enable_writes_the_file_whatever_was_there(before: str | None, tmp_path: Path) -> None:
    if before is not None:
        (tmp_path / FILE).write_text(before)
        assert run_action("status", str(tmp_path)).startswith(
            f"enabled: {tmp_path / FILE}, written by another"
        )
    assert run_action("enable", str(tmp_path)).startswith(f"enabled: {tmp_path / FILE}. With KERAS_BACKEND")
    assert (tmp_path / FILE).read_text() == CONTENT
    assert os.listdir(tmp_path) == [FILE]


def test_enable_leaves_a_file_that_is_right_alone(tmp_path: Path) -> None:
    run_action("enable", str(tmp_path))
    before = os.stat(tmp_path / FILE)
    run_action("enable", str(tmp_path))
    after = os.stat(tmp_path / FILE)
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("content", [None, CONTENT, "import another_version\n"])
def test_disable_removes_the_file_if_there_is_one(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / FILE).write_text(content)
    assert run_action("disable", str(tmp_path)).startswith(f"disabled: {tmp_path / FILE} does not exist")
    assert os.listdir(tmp_path) == []


def test_status_changes_nothing(tmp_path: Path) -> None:
    assert run_action("status", str(tmp_path)).startswith("disabled: ")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("action", ACTIONS)
def test_a_folder_in_the_place_of_the_file_is_an_error(action: str, tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(CommandError, match=f"{FILE} can't be .*: Is a directory"):
        run_action(action, str(tmp_path))


def message_in_child(action: str, folder: Path) -> str:
    """The error's message in a forked process, which root starts as another user: root may write anywhere."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.getuid() == 0:
                for parent in folder.parents:
                    if parent.name.startswith("pytest"):
                        parent.chmod(0o755)
                os.setuid(65534)
            message = run_action(action, str(folder))
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
        os.write(write, message.encode())
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as pipe:
        message = pipe.read()
    os.waitpid(child, 0)
    return message


@pytest.mark.skipif(sys.platform == "win32", reason="users are POSIX's")
@pytest.mark.parametrize(("action", "done"), [("enable", "written"), ("disable", "removed")])
def test_site_packages_that_may_not_be_written_to(action: str, done: str, tmp_path: Path) -> None:
    before = [FILE] if action == "disable" else []
    for name in before:
        (tmp_path / name).write_text(CONTENT)
    tmp_path.chmod(0o555)
    message = message_in_child(action, tmp_path)
    tmp_path.chmod(0o755)
    assert message.startswith(f"CommandError: {tmp_path / FILE} can't be {done}: Permission denied. Use an ")
    assert message.endswith("or import dualflow before keras, which needs no file.")
    assert os.listdir(tmp_path) == before


# An environment


@pytest.fixture
def python(tmp_path: Path) -> str:
    """The interpreter of a new environment, in which nothing is installed."""
    venv.create(tmp_path / "environment", symlinks=sys.platform != "win32")
    context = venv.EnvBuilder().ensure_directories(tmp_path / "environment")
    return str(context.env_exe)


def run(python: str, *words: str, libraries: bool = True) -> subprocess.CompletedProcess[str]:
    """Run an interpreter with ``KERAS_BACKEND=dualflow``, which finds the packages of this environment."""
    packages = [ROOT, sysconfig.get_path("purelib")] if libraries else []
    environment = {**os.environ, "KERAS_BACKEND": "dualflow", "PYTHONPATH": os.pathsep.join(packages)}
    return subprocess.run([python, *words], capture_output=True, text=True, env=environment, check=False)


IMPORT = "import keras; print(keras.backend.backend())"


@pytest.mark.exhaustive
def test_keras_takes_the_backend_while_the_environment_has_the_file(python: str) -> None:
    done = run(python, "-m", "dualflow", "keras", "enable")
    assert done.stdout.startswith("enabled: "), done.stderr
    assert os.path.dirname(os.path.dirname(python)) in done.stdout
    assert run(python, "-c", IMPORT).stdout == "dualflow\n"
    assert run(python, "-m", "dualflow", "keras", "disable").stdout.startswith("disabled: ")
    assert run(python, "-c", IMPORT).stderr.endswith("ValueError: Unable to import backend : dualflow\n")


def test_python_starts_silently_once_dualflow_is_uninstalled(python: str) -> None:
    run(python, "-m", "dualflow", "keras", "enable")
    done = run(python, "-c", "print('started')", libraries=False)
    assert (done.stdout, done.stderr) == ("started\n", "")


@pytest.mark.parametrize("words", [[], ["forget"], ["enable", "more"]])
def test_words_that_name_no_action_are_refused(words: list[str], python: str) -> None:
    done = run(python, "-m", "dualflow", "keras", *words)
    assert done.returncode == 2
    assert "usage: python -m dualflow" in done.stderr


def test_the_wheel_has_no_startup_file() -> None:
    """Packages that run code at each start of Python are for a user to choose."""
    assert "force-include" not in Path(ROOT, "pyproject.toml").read_text(encoding="utf-8")
    assert [
        str(path) for package in ("dualflow", "keras_dualflow") for path in Path(ROOT, package).rglob("*.pth")
    ] == []
