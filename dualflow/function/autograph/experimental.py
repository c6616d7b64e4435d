"""TensorFlow's other place for :func:`do_not_convert`."""

from dualflow.core.namespace import publish as _publish
from dualflow.function.autograph.do_not_convert import do_not_convert as do_not_convert

_publish(globals())
