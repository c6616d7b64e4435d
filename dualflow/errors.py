"""The errors and warnings that dualflow raises: ``df.errors``."""

from dualflow.core.errors import *  # noqa: F403  # each class there is for users
from dualflow.core.errors import DualflowError
from dualflow.core.namespace import publish as _publish
from dualflow.core.status_errors import *  # noqa: F403  # each class and number is for users
from dualflow.function.errors import CapturedValueWarning as CapturedValueWarning
from dualflow.function.errors import FrozenDrawWarning as FrozenDrawWarning
from dualflow.function.errors import NotNativeError as NotNativeError
from dualflow.function.errors import RecursiveTraceError as RecursiveTraceError
from dualflow.function.errors import RetracingWarning as RetracingWarning
from dualflow.function.errors import SymbolicValueError as SymbolicValueError

OpError = DualflowError

_publish(globals(), internal=("Final", "annotations"))
