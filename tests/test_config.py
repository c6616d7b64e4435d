"""Switches and versions that programs set or read when they start."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from error_cases import ErrorCases

import dualflow as df

EXPERIMENTAL = df.config.experimental
(CPU,) = df.config.list_physical_devices("CPU")
GPU = df.config.PhysicalDevice("/physical_device:GPU:0", "GPU")


def test_the_start_of_a_program_for_gpus_runs() -> None:
    gpus = EXPERIMENTAL.list_physical_devices("GPU")
    for gpu in gpus:
        EXPERIMENTAL.set_memory_growth(gpu, True)
    EXPERIMENTAL.set_visible_devices(gpus, "GPU")
    EXPERIMENTAL.enable_op_determinism()
    EXPERIMENTAL.set_synchronous_execution(True)
    EXPERIMENTAL.enable_tensor_float_32_execution(False)
    df.config.optimizer.set_jit(True)
    df.config.optimizer.set_experimental_options({"constant_folding": True})
    df.config.experimental_run_functions_eagerly(False)
    assert not df.config.experimental_functions_run_eagerly()


def test_getters_report_the_fixed_behaviour() -> None:
    assert EXPERIMENTAL.get_synchronous_execution()
    assert not EXPERIMENTAL.tensor_float_32_execution_enabled()
    assert df.config.optimizer.get_jit() == "autoclustering"
    assert df.config.optimizer.get_experimental_options() == {}


class TestErrorMessages(ErrorCases):
    cases: ClassVar = {
        "the growth of memory": (
            lambda: EXPERIMENTAL.get_memory_growth(CPU),
            ValueError,
            "of GPUs.*for list_physical_devices",
        ),
        "a new growth of memory": (
            lambda: EXPERIMENTAL.set_memory_growth(CPU, True),
            ValueError,
            "of GPUs.*for list_physical_devices",
        ),
        "memory that doesn't grow": (
            lambda: EXPERIMENTAL.set_memory_growth(GPU, False),
            ValueError,
            "can't be allocated at once",
            "Leave set_memory_growth out",
        ),
        "asynchronous execution": (
            lambda: EXPERIMENTAL.set_synchronous_execution(False),
            RuntimeError,
            "leave .* out",
        ),
        "no compiler": (
            lambda: df.config.optimizer.set_jit(False),
            ValueError,
            r"run_functions_eagerly\(True\)",
        ),
        "a bug report of another kind": (
            lambda: df.bug_report("report.txt"),
            ValueError,
            "'report.txt' doesn't end with .zip",
        ),
        "a bug report of no function": (
            lambda: df.bug_report("report.zip", 3),  # type: ignore[arg-type]  # refused
            TypeError,
            "3 can't be called",
            "takes a function and its arguments",
        ),
        "a mode": (lambda: df.show_config("yaml"), ValueError, "no mode 'yaml'; it is 'stdout' or 'dicts'"),
    }
    raised_in = ("config/*.py",)


def test_the_configuration_is_plain_data() -> None:
    configuration = df.show_config(mode="dicts")
    assert json.loads(json.dumps(configuration)) == configuration
    assert configuration["versions"]["numpy"] == np.__version__
    assert configuration["backend"]["name"] == df.config.get_backend()
    assert all(part["detail"] for part in configuration["parts"].values() if not part["on"])


def test_the_configuration_reports_who_chose_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen() -> object:
        return df.show_config(mode="dicts")["backend"]

    monkeypatch.delenv("DUALFLOW_BACKEND", raising=False)
    assert chosen() == {"name": "llvm", "chosen_by": "the default"}
    monkeypatch.setenv("DUALFLOW_BACKEND", "numba")
    assert chosen() == {"name": "numba", "chosen_by": "DUALFLOW_BACKEND"}
    df.config.set_backend("numpy")
    try:
        assert chosen() == {"name": "numpy", "chosen_by": "df.config.set_backend"}
    finally:
        df.config.set_backend(None)


def test_the_configuration_is_printed_a_line_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALFLOW_NUM_THREADS", "1")
    df.show_config()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"dualflow        {df.version.DUALFLOW} in ")
    assert f"numpy           {np.__version__}" in lines
    assert "DUALFLOW_NUM_THREADS=1" in lines[-1]


def test_the_cache_of_the_configuration_is_the_folder_and_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache" / "entry.dfo").write_bytes(bytes(1000))
    cache = df.show_config(mode="dicts")["cache"]
    assert cache == {"folder": str(tmp_path / "cache"), "trusted": True, "objects": 1, "bytes": 1000}


def test_the_version_is_of_the_tensorflow_that_programs_find() -> None:
    assert df.__version__ == df.version.VERSION == df.compat.v1.__version__
    assert df.__git_version__ == df.version.GIT_VERSION == df.compat.v1.__git_version__
    assert df.__compiler_version__ == df.version.COMPILER_VERSION == df.compat.v1.__compiler_version__
    assert re.fullmatch(r"2\.\d+\.\d+", df.__version__)


def test_dualflows_own_version_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["version"] == df.version.DUALFLOW
    assert df.version.DUALFLOW in df.version.GIT_VERSION
