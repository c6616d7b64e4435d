"""Imports of TensorFlow by Keras's preprocessing layers and loaders, replaced by imports of dualflow."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import dualflow as df
from keras_dualflow.tensorflow_imports import TENSORFLOW_IMPORTS, code_with_replaced_imports

HASHING = "keras.src.layers.preprocessing.hashing"
OPS = "keras.src.utils.module_utils"


def path_of(module: str) -> Path:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def names_of(code: CodeType) -> set[str]:
    """The names in a code object and in the functions in it."""
    functions = [x for x in code.co_consts if isinstance(x, CodeType)]
    return {*code.co_names}.union(*map(names_of, functions))


@pytest.mark.parametrize("module", TENSORFLOW_IMPORTS)
def test_the_modules_of_keras_have_these_imports(keras: Any, module: str) -> None:
    path = path_of(module)
    original = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    code = code_with_replaced_imports(original, module)
    assert code.co_filename == str(path)
    assert "keras_dualflow.tensorflow_names" in names_of(code)
    assert {*names_of(original)} - names_of(code) <= {OPS, "keras.src.backend"}


@pytest.mark.parametrize(
    "source",
    [
        "import numpy",
        f"from {OPS} import tensorflow as tf",
        f"from {OPS} import tensorflow as tf\ndef f():\n    from keras.src.backend import name_scope",
    ],
)
def test_another_structure_is_refused(keras: Any, source: str) -> None:
    with pytest.raises(ImportError, match=r"expected to have the import `from keras\.src") as raised:
        code_with_replaced_imports(compile(source, "hashing.py", "exec"), HASHING)
    assert str(raised.value).startswith(f"{HASHING} of Keras 3.")


def test_the_layers_compute_with_dualflow(keras: Any) -> None:
    tf = sys.modules[HASHING].tf  # type: ignore[attr-defined]
    assert tf.available
    assert tf.strings is df.strings
    assert repr(tf) == "LazyModule(dualflow)"


def test_the_loaders_import_other_modules_from_keras(keras: Any) -> None:
    loader, modules = sys.modules["keras.src.utils.image_dataset_utils"], sys.modules[OPS]
    assert loader.grain is modules.grain  # type: ignore[attr-defined]


@pytest.mark.exhaustive
def test_the_layers_and_loaders_do_not_import_tensorflow() -> None:
    program = (
        "import os, sys; os.environ['KERAS_BACKEND'] = 'dualflow'\n"
        "import dualflow, keras\n"
        "layer = keras.layers.StringLookup(vocabulary=['a'])\n"
        "windows = keras.utils.timeseries_dataset_from_array([1, 2, 3], None, 2)\n"
        "print(layer(['a', 'b']).numpy(), len(list(windows)), 'tensorflow' in sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stdout == "[1 0] 1 False\n", ended.stderr
