"""Finding out what a program does: ``df.debugging``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.core.tracebacks import disable_traceback_filtering as disable_traceback_filtering
    from dualflow.core.tracebacks import enable_traceback_filtering as enable_traceback_filtering
    from dualflow.core.tracebacks import is_traceback_filtering_enabled as is_traceback_filtering_enabled
    from dualflow.function.debugging.stepping import Step as Step
    from dualflow.function.inspect.check_numerics import disable_check_numerics as disable_check_numerics
    from dualflow.function.inspect.check_numerics import enable_check_numerics as enable_check_numerics

_publish(globals(), internal=("TYPE_CHECKING",), deferred=True)
