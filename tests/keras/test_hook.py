"""How Keras comes to this backend: by its environment variable, its settings file, or ``df.keras``."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import dualflow as df
import keras_dualflow
from keras_dualflow import choice, hook, startup

PACKAGES = str(Path(keras_dualflow.__file__).parents[1])
STARTUP = Path(startup.__file__).with_name("startup.pth")
CHOOSE = "import os; os.environ['KERAS_BACKEND'] = 'dualflow'; "


def run(program: str, *paths: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    setup = f"import sys; sys.path[:0] = {[*paths, PACKAGES]!r}; "
    return subprocess.run(
        [sys.executable, *options, "-c", setup + program], capture_output=True, text=True, check=False
    )


def test_a_plain_import_of_keras_finds_the_backend(tmp_path: Path) -> None:
    """The wheel puts ``startup.pth`` where Python reads it when it starts."""
    (tmp_path / "dualflow_keras.pth").write_text(STARTUP.read_text(encoding="utf-8"), encoding="utf-8")
    program = f"import site; site.addsitedir({str(tmp_path)!r}); {CHOOSE}"
    ended = run(program + "import keras; print(keras.backend.backend(), keras.ops.ones(2).numpy())")
    assert ended.stdout.split("\n")[0] == "dualflow [1. 1.]", ended.stderr


def test_what_waits_for_keras_loads_nothing() -> None:
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
    assert choice.chosen() == backend


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


# Refusals


@pytest.mark.parametrize("version", ["3.14.2", "3.16.0", "4.0"])
def test_another_release_of_keras_is_refused(version: str) -> None:
    with pytest.raises(ImportError, match=rf"Keras {version} is installed: pip install 'keras==3.15.\*'"):
        hook.check_release(version)


def test_a_module_that_chooses_in_another_way_is_refused() -> None:
    code = compile("backend = 'numpy'", "layer.py", "exec")
    with pytest.raises(ImportError, match=r"keras.src.layers.layer of this Keras chooses its backend"):
        hook.retargeted(code, {"keras.src.backend.numpy.layer": "x"}, "keras.src.layers.layer")


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
