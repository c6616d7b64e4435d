"""dualflow as a backend of Keras 3: ``KERAS_BACKEND=dualflow``.

The package is laid out as Keras wants backends outside of it: ``src`` has the trainer, the base of layers and
the ops. Keras 3.15 does not look for such packages, so :mod:`keras_dualflow.hook` puts this one in.
"""
