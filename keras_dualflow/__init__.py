"""dualflow as a backend of Keras 3: ``KERAS_BACKEND=dualflow``.

The package is laid out as Keras's convention for backends outside of it wants: ``src`` has the trainer, the
base of layers and the ops. Keras 3.15 does not look for such packages: :mod:`keras_dualflow.hook` adds it.
"""
