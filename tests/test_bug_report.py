"""``df.bug_report``: the file repeats the call without the function's source."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import pytest
from forked_programs import run_forked

import dualflow as df


def names_in(path: str) -> list[str]:
    return zipfile.ZipFile(path).namelist()


def text_in(path: str, name: str) -> str:
    return zipfile.ZipFile(path).read(name).decode()


def test_a_report_without_a_function_has_the_configuration(tmp_path: Path) -> None:
    path = df.bug_report(tmp_path / "report.zip")
    assert names_in(path) == ["config.txt"]
    assert text_in(path, "config.txt").startswith("dualflow  ")


def test_the_program_in_a_report_repeats_the_call(tmp_path: Path) -> None:
    total = df.Variable([1.0, 2.0])

    @df.function
    def step(x: Any, pair: Any, scale: float, limit: float) -> Any:
        total.assign_add(x)
        return df.minimum(df.reduce_sum(total) * scale, limit), {"sum": pair[0] + pair[1]}

    arguments = df.ones([2]), (df.ones([3]), [1.0, 2.0, 3.0])
    path = df.bug_report(tmp_path / "report.zip", step, *arguments, scale=0.5, limit=math.inf)
    assert total.numpy().tolist() == [1.0, 2.0]
    zipfile.ZipFile(path).extractall(tmp_path / "report")
    done = run_forked(["replay.py"], cwd=tmp_path / "report")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("step(x: float32[2], ")
    assert " agrees: " in done.stdout


def test_a_function_that_cannot_be_traced_is_reported_with_its_error(tmp_path: Path) -> None:
    path = df.bug_report(tmp_path / "report.zip", lambda x: df.matmul(x, x), df.ones([2, 3]))
    assert names_in(path) == ["config.txt", "error.txt"]
    assert "InvalidArgumentError" in text_in(path, "error.txt")


def test_a_call_that_files_cannot_repeat_has_the_reason(tmp_path: Path) -> None:
    path = df.bug_report(
        tmp_path / "report.zip", lambda x: df.numpy_function(lambda y: y, [x], df.float32), df.ones([2])
    )
    assert "replay.py" not in names_in(path)
    assert "can't be repeated from files" in text_in(path, "replay.txt")


@pytest.mark.parametrize("argument", [object(), len])
def test_an_argument_without_text_is_the_reason_that_there_is_no_program(
    tmp_path: Path, argument: object
) -> None:
    path = df.bug_report(tmp_path / "report.zip", lambda x, _: x, df.ones([2]), argument)
    assert type(argument).__name__ in text_in(path, "replay.txt")


@pytest.mark.parametrize("dtype", [df.string, df.bfloat16], ids=["string", "bfloat16"])
def test_an_argument_that_npz_files_cannot_hold_is_the_reason(tmp_path: Path, dtype: Any) -> None:
    x = df.constant(["a"]) if dtype == df.string else df.ones([2], dtype)
    path = df.bug_report(tmp_path / "report.zip", lambda x: df.identity(x), x)
    assert "replay.py" not in names_in(path)
    assert f"an npz file has no {dtype.name}" in text_in(path, "replay.txt")
