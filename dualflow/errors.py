"""The errors and warnings that dualflow raises: ``df.errors``."""

from dualflow.core.errors import DTypeError as DTypeError
from dualflow.core.errors import DualflowError as DualflowError
from dualflow.core.errors import FailedPreconditionError as FailedPreconditionError
from dualflow.core.errors import InaccessibleTensorError as InaccessibleTensorError
from dualflow.core.errors import InternalError as InternalError
from dualflow.core.errors import InvalidArgumentError as InvalidArgumentError
from dualflow.core.errors import MissingAttributeError as MissingAttributeError
from dualflow.core.errors import MissingNameError as MissingNameError
from dualflow.core.errors import NotFoundError as NotFoundError
from dualflow.core.errors import OperatorNotAllowedInGraphError as OperatorNotAllowedInGraphError
from dualflow.core.errors import OutOfRangeError as OutOfRangeError
from dualflow.core.errors import ResourceExhaustedError as ResourceExhaustedError
from dualflow.core.namespace import publish as _publish
from dualflow.function.errors import CapturedValueWarning as CapturedValueWarning
from dualflow.function.errors import NotNativeError as NotNativeError
from dualflow.function.errors import RecursiveTraceError as RecursiveTraceError
from dualflow.function.errors import RetracingWarning as RetracingWarning
from dualflow.function.errors import SymbolicValueError as SymbolicValueError

OpError = DualflowError

_publish(globals())
