"""Keras 3 on this engine: ``df.keras``, with the names of ``tf.keras``.

Keras is a package of its own: ``pip install "dualflow[keras]"``. It is imported when first asked for, and
takes dualflow as its backend: a program that has imported Keras with another one can't have ``df.keras``.

>>> import dualflow as df
>>> model = df.keras.Sequential([df.keras.layers.Dense(2, kernel_initializer="ones")])
>>> model(df.constant([[1.0, 2.0]])).numpy()
array([[3., 3.]], dtype=float32)
"""

from typing import TYPE_CHECKING

from keras_dualflow.front import tf_keras as _tf_keras

if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any:
        """A name of Keras's."""


_names = vars(_tf_keras())
globals().update({name: value for name, value in _names.items() if not name.startswith("_")})
__version__: str = _names["__version__"]
# `import dualflow.keras.layers` finds the namespaces where Keras has them.
__path__ = list(_names["__path__"])
