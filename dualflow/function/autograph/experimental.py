"""TensorFlow's other place for :func:`do_not_convert`."""

from dualflow.function.autograph.marks import do_not_convert as do_not_convert
