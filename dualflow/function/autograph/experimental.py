"""``df.autograph.experimental``: the names of ``tf.autograph.experimental``."""

from dualflow.core.namespace import publish as _publish
from dualflow.function.autograph.do_not_convert import do_not_convert as do_not_convert
from dualflow.function.autograph.loop_options import set_loop_options as set_loop_options

_publish(globals())
