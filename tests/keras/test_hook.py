"""How Keras loads this backend: by environment variable, settings file, or ``df.keras``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import dualflow as df
import keras_dualflow
from dualflow.cli import keras_startup
from keras_dualflow import choice, hook

PACKAGES = str(Path(keras_dualflow.__file__).parents[1])
LIBRARIES = sysconfig.get_path("purelib")
CHOOSE = "import os; os.environ['KERAS_BACKEND'] = 'dualflow'; "
HIDE = 'import sys; sys.modules.update(dict.fromkeys(["matplotlib", "pandas", "sklearn"]))'
"""Hides what Keras imports if it is installed, which takes two of the three seconds of its import."""


def run(program: str, *paths: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    setup = f"{HIDE}; sys.path[:0] = {[*paths, PACKAGES]!r}; "
    return subprocess.run(
        [sys.executable, *options, "-c", setup + program], capture_output=True, text=True, check=False
    )


def without_startup_file(program: str, *paths: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter that reads no file of site-packages when it starts."""
    return run(program, *paths, LIBRARIES, options=("-I", "-S"))


def test_a_plain_import_of_keras_finds_the_backend(tmp_path: Path) -> None:
    """``python -m dualflow keras enable`` writes a file that Python reads when it starts."""
    keras_startup.run_action("enable", str(tmp_path))
    program = f"import site; site.addsitedir({str(tmp_path)!r}); {CHOOSE}"
    ended = without_startup_file(
        program + "import keras; print(keras.backend.backend(), keras.ops.ones(2).numpy())"
    )
    assert ended.stdout.split("\n")[0] == "dualflow [1. 1.]", ended.stderr


def test_importing_dualflow_first_needs_no_startup_file() -> None:
    ended = without_startup_file(f"{CHOOSE}import dualflow, keras; print(keras.backend.backend())")
    assert ended.stdout == "dualflow\n", ended.stderr


def test_programs_for_tensorflow_need_no_startup_file(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import keras; print(keras.backend.backend())", encoding="utf-8")
    program = f"from dualflow.cli import main; main(['run', {str(tmp_path / 'program.py')!r}])"
    ended = without_startup_file(program)
    assert ended.stdout == "dualflow\n", ended.stderr


@pytest.mark.exhaustive
def test_an_import_of_keras_that_failed_can_be_repeated() -> None:
    """Without the import hook Keras refuses the backend's name, half way through its import."""
    ended = without_startup_file(
        f"""{CHOOSE}
try:
    import keras
except ValueError as error:
    print(error)
import dualflow, keras
print(keras.ops.add(dualflow.ones(2, "float64"), 1).dtype.name, keras.Sequential([keras.layers.ReLU()]).built)
"""
    )
    assert ended.stdout.splitlines() == ["Unable to import backend : dualflow", "float64 False"], ended.stderr


@pytest.mark.exhaustive
def test_threads_and_forks_import_keras_with_the_backend() -> None:
    ended = without_startup_file(
        f"""{CHOOSE}
import dualflow
from concurrent.futures import ThreadPoolExecutor

def backend(_):
    import keras
    return keras.backend.backend(), keras.layers.Layer.__mro__[1].__module__

child = os.fork()
if not child:
    assert backend(0)[0] == "dualflow"
    os._exit(42)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
with ThreadPoolExecutor(4) as pool:
    print(*set(pool.map(backend, range(4))))
"""
    )
    assert ended.stdout == "('dualflow', 'keras_dualflow.src.layer')\n", ended.stderr


def test_the_keras_hook_loads_nothing() -> None:
    program = (
        "import os; seen = set(sys.modules); import keras_dualflow.startup; print(*set(sys.modules) - seen)"
    )
    ended = run(program, options=("-S",))  # which does not run startup.pth either
    own = {"keras_dualflow", "keras_dualflow.choice", "keras_dualflow.startup"}
    assert set(ended.stdout.split()) == {"__future__", *own}


@pytest.mark.parametrize(
    ("settings", "environment", "backend"),
    [
        ('{"backend": "dualflow"}', None, "dualflow"),
        ('{"backend": "dualflow"}', "jax", "jax"),
        ('{"floatx": "float32"}', None, ""),
        ("[1]", None, ""),
        ("no json", None, ""),
        (None, None, ""),
        (None, "dualflow", "dualflow"),
    ],
)
def test_the_environment_comes_before_the_settings_file(
    settings: str | None,
    environment: str | None,
    backend: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    if environment:
        monkeypatch.setenv("KERAS_BACKEND", environment)
    if settings is not None:
        (tmp_path / "keras.json").write_text(settings, encoding="utf-8")
    assert choice.chosen_backend() == backend


def test_the_namespaces_are_those_of_keras(keras: Any) -> None:
    assert keras.backend.backend() == keras.config.backend() == "dualflow"
    assert df.losses is keras.losses
    assert df.metrics.Mean is keras.metrics.Mean
    assert df.optimizers.Adam is keras.optimizers.Adam
    from dualflow.keras.layers import Dense

    from dualflow.keras import layers

    assert layers.Dense is Dense is keras.layers.Dense


def test_the_dynamic_backend_takes_the_name(keras: Any) -> None:
    from keras.src.utils.backend_utils import DynamicBackend

    backend = DynamicBackend()
    assert backend.name == "dualflow"
    assert backend.convert_to_tensor([1.0]).dtype is df.float32
    backend.set_backend("dualflow")
    with pytest.raises(ValueError, match="Available backends"):
        backend.set_backend("abacus")


def test_keras_s_seed_is_dualflow_s_too(keras: Any) -> None:
    def drawn() -> list[float]:
        keras.utils.set_random_seed(7)
        return [*df.random.normal([2]).numpy(), *keras.random.normal([2]).numpy()]

    assert drawn() == drawn()


@pytest.mark.exhaustive
def test_processes_that_multiprocessing_starts_import_keras_with_the_backend(tmp_path: Path) -> None:
    """Their main module does not import dualflow: a program without a file has none there."""
    (tmp_path / "work.py").write_text(f"{HIDE}\nimport keras\n\nbackend = keras.backend.backend\n", "utf-8")
    program = f"""
{HIDE}
import dualflow, multiprocessing
from concurrent.futures import ProcessPoolExecutor
dualflow.keras
import work
for method in ("spawn", "forkserver"):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        print(method, pool.submit(work.backend).result())
"""
    paths = os.pathsep.join([str(tmp_path), PACKAGES, LIBRARIES])
    ended = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "spawn dualflow\nforkserver dualflow\n", ended.stderr


# Refusals


@pytest.mark.parametrize("version", ["2.15.0", "3.9.2", "3.14.2"])
def test_an_older_release_of_keras_is_refused(version: str) -> None:
    with pytest.raises(ImportError, match=rf"Keras {version} is installed: pip install 'keras>=3.15'"):
        hook.check_release(version)


@pytest.mark.parametrize("version", ["3.16.0", "3.100.0.dev2027", "4.0", "nightly"])
def test_a_newer_release_of_keras_is_warned_of_at_the_user_s_line(version: str) -> None:
    with pytest.warns(UserWarning, match=f"Keras {re.escape(version)} is not tested") as warned:
        hook.check_release(version)
    assert [warning.filename for warning in warned] == [__file__]


@pytest.mark.parametrize("version", ["3.15.0", "3.15.1", "3.15.2rc0"])
def test_a_tested_release_of_keras_is_taken_silently(version: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hook.check_release(version)


def test_a_keras_that_runs_on_another_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = types.ModuleType("keras.src.backend")
    vars(other)["backend"] = lambda: "torch"
    monkeypatch.setitem(sys.modules, "keras.src.backend", other)
    with pytest.raises(ImportError, match="Keras runs on 'torch' already; set KERAS_BACKEND=dualflow"):
        hook.install()


def test_without_keras_the_error_names_the_command(tmp_path: Path) -> None:
    finder = """
class Absent:
    def find_spec(self, name, *_):
        if name == "keras":
            raise ModuleNotFoundError(name, name="keras")
"""
    (tmp_path / "absent.py").write_text(finder, encoding="utf-8")
    program = "import absent; sys.meta_path[:0] = [absent.Absent()]; import dualflow; dualflow.losses"
    last = run(program, str(tmp_path)).stderr.splitlines()[-1]
    assert last.startswith("dualflow.core.errors.MissingNameError: ")
    assert 'pip install "dualflow[keras]"' in last
