"""The default step of summaries: ``df.summary.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.summary.defaults import get_step as get_step
    from dualflow.summary.defaults import set_step as set_step

_publish(globals(), lazy={"dualflow.summary.defaults": "get_step set_step"})
