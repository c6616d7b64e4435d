"""``df.keras``: Keras on this backend."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from dualflow.core.errors import MissingNameError
from keras_dualflow.choice import NAME
from keras_dualflow.hook import install


def tf_keras() -> ModuleType:
    """The names of ``tf.keras``, from a Keras that runs on this backend.

    ``KERAS_BACKEND`` is set, so that child processes use the same backend.

    Raises:
        MissingNameError: Keras is not installed.
        ImportError: Keras is too old, has an unexpected structure, or already runs on another backend.
    """
    if _is_missing("keras"):
        raise MissingNameError(
            "df.keras, df.losses, df.metrics and df.optimizers are Keras's, which is not installed: "
            'pip install "dualflow[keras]".',
            name="keras",
        )
    os.environ["KERAS_BACKEND"] = NAME
    install()
    return import_module("keras._tf_keras.keras")


def _is_missing(module: str) -> bool:
    try:
        return find_spec(module) is None
    except ModuleNotFoundError:  # raised by a finder
        return True
