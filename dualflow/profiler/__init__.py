"""The profiler, ``df.profiler``: writes traces for Perfetto and Chrome."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.profiler import experimental as experimental
    from dualflow.profiler.session import ProfileFile as ProfileFile
    from dualflow.profiler.session import trace as trace

_publish(
    globals(),
    modules=("experimental",),
    lazy={
        "dualflow.profiler": "experimental",
        "dualflow.profiler.session": "ProfileFile trace",
    },
)
