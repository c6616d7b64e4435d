"""dualflow as a backend of Keras 3: ``KERAS_BACKEND=dualflow``."""
