"""Keras 3 on this engine: ``df.keras``, with the names of ``tf.keras``.

Keras is a package of its own: ``pip install "dualflow[keras]"``. It is imported when first asked for, and
takes dualflow as its backend: a program that has imported Keras with another one can't have ``df.keras``.

>>> import dualflow as df
>>> model = df.keras.Sequential([df.keras.layers.Dense(2, kernel_initializer="ones")])
>>> model(df.constant([[1.0, 2.0]])).numpy()
array([[3., 3.]], dtype=float32)
"""

import sys
from typing import TYPE_CHECKING

from keras_dualflow.front import tf_keras

if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any:
        """A name of Keras's."""


sys.modules[__name__] = tf_keras()
