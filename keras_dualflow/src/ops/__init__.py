"""The implementations of ``keras.ops``."""

from keras_dualflow.src.ops.core import *  # noqa: F403
