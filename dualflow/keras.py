"""``df.keras``: Keras 3 with dualflow as its backend, under the names of ``tf.keras``.

Keras is an optional dependency: ``pip install "dualflow[keras]"``. It is imported at the first use of
``df.keras``, which requires that the program has not imported Keras with another backend.

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
        """An attribute of Keras."""


_names = vars(_tf_keras())
globals().update({name: value for name, value in _names.items() if not name.startswith("_")})
__version__: str = _names["__version__"]
# So that `import dualflow.keras.layers` searches the folders of Keras.
__path__ = list(_names["__path__"])
