"""The implementations of ``keras.ops``; Keras documents the functions that have no docstring here."""

from keras_dualflow.src.ops.core import *  # noqa: F403
