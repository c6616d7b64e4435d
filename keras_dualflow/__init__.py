"""dualflow as a backend of Keras 3: ``KERAS_BACKEND=dualflow``.

The package has the layout of Keras's own backends: ``src`` has the trainer, the base class of layers and the
ops. Keras has a fixed list of backends, to which :mod:`keras_dualflow.hook` adds this one.
"""
