"""dualflow as a backend of Keras 3: ``KERAS_BACKEND=dualflow``.

The package is laid out as Keras's own backends are: ``src`` has the trainer, the base class of layers and the
ops. Keras lists its backends and does not look for others: :mod:`keras_dualflow.hook` adds this one.
"""
