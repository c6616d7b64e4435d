"""Imports of TensorFlow by Keras's layers of words, which are replaced by imports of dualflow."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import dualflow as df
from keras_dualflow.tensorflow_imports import TENSORFLOW_IMPORTS, code_with_replaced_imports

HASHING = "keras.src.layers.preprocessing.hashing"


def path_of(module: str) -> Path:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


@pytest.mark.parametrize("module", TENSORFLOW_IMPORTS)
def test_the_modules_of_keras_have_these_imports(keras: Any, module: str) -> None:
    path = path_of(module)
    code = code_with_replaced_imports(path.read_bytes(), str(path), module)
    assert "keras_dualflow.tensorflow_names" in code.co_names
    assert "keras.src.utils.module_utils" not in code.co_names
    assert code.co_filename == str(path)


@pytest.mark.parametrize(
    "source", ["import numpy", "from keras.src.utils.module_utils import tensorflow as tf", "tf = 1"]
)
def test_another_structure_is_refused(keras: Any, source: str) -> None:
    with pytest.raises(ImportError, match=r"expected to have the import `from keras\.src") as raised:
        code_with_replaced_imports(source.encode(), "hashing.py", HASHING)
    assert str(raised.value).startswith(f"{HASHING} of Keras 3.")


def test_the_layers_compute_with_dualflow(keras: Any) -> None:
    tf = sys.modules[HASHING].tf  # type: ignore[attr-defined]
    assert tf.available
    assert tf.strings is df.strings
    assert repr(tf) == "LazyModule(dualflow)"


@pytest.mark.exhaustive
def test_the_layers_do_not_import_tensorflow() -> None:
    program = (
        "import os, sys; os.environ['KERAS_BACKEND'] = 'dualflow'\n"
        "import dualflow, keras\n"
        "layer = keras.layers.StringLookup(vocabulary=['a'])\n"
        "print(layer(['a', 'b']).numpy(), 'tensorflow' in sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stdout == "[1 0] False\n", ended.stderr
