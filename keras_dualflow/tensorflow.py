"""The backend, under a name that ends with "tensorflow": then Keras encodes categories by counts.

Keras's preprocessing layers of words and categories import it in place of Keras's backend for TensorFlow.
"""

from keras_dualflow.flat import *  # noqa: F403  the names of a backend
