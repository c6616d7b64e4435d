"""The profiler under TensorFlow's names: ``df.profiler.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.profiler.session import Profile as Profile
    from dualflow.profiler.session import ProfilerOptions as ProfilerOptions
    from dualflow.profiler.session import Trace as Trace
    from dualflow.profiler.session import start as start
    from dualflow.profiler.session import stop as stop

_publish(globals(), lazy={"dualflow.profiler.session": "Profile ProfilerOptions Trace start stop"})
