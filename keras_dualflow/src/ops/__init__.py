"""The implementations of ``keras.ops``, which documents them: functions without a docstring do as it says."""

from keras_dualflow.src.ops.core import *  # noqa: F403
