"""Switches and versions that programs ask for when they start."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import dualflow as df

EXPERIMENTAL = df.config.experimental
(CPU,) = df.config.list_physical_devices()


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


def test_what_is_asked_is_what_holds() -> None:
    assert EXPERIMENTAL.get_synchronous_execution()
    assert not EXPERIMENTAL.tensor_float_32_execution_enabled()
    assert df.config.optimizer.get_jit() == "autoclustering"
    assert df.config.optimizer.get_experimental_options() == {}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: EXPERIMENTAL.get_memory_growth(CPU), ValueError, "of GPUs.*for list_physical_devices"),
        (lambda: EXPERIMENTAL.set_memory_growth(CPU, True), ValueError, "of GPUs.*for list_physical_devices"),
        (lambda: EXPERIMENTAL.set_synchronous_execution(False), RuntimeError, "leave .* out"),
        (lambda: df.config.optimizer.set_jit(False), ValueError, r"run_functions_eagerly\(True\)"),
    ],
)
def test_what_can_not_be_switched_says_so(
    call: Callable[[], None], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_every_refusal_has_a_case(raises_without_case: Callable[..., list[str]]) -> None:
    calls = [
        lambda: EXPERIMENTAL.get_memory_growth(CPU),
        lambda: EXPERIMENTAL.set_memory_growth(CPU, True),
        lambda: EXPERIMENTAL.set_synchronous_execution(False),
        lambda: df.config.optimizer.set_jit(False),
    ]
    assert raises_without_case(["config/*.py"], calls) == []


def test_the_version_is_of_the_tensorflow_that_programs_find() -> None:
    assert df.__version__ == df.version.VERSION
    assert re.fullmatch(r"2\.\d+\.\d+", df.__version__)


def test_dualflows_own_version_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["version"] == df.version.DUALFLOW
    assert df.version.DUALFLOW in df.version.GIT_VERSION
