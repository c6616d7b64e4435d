"""TensorFlow's numbers of kinds of errors, and kinds that nothing here raises but programs do."""

from __future__ import annotations

from typing import Final

from dualflow.core.errors import DualflowError

OK: Final = 0
CANCELLED: Final = 1
UNKNOWN: Final = 2
INVALID_ARGUMENT: Final = 3
DEADLINE_EXCEEDED: Final = 4
NOT_FOUND: Final = 5
ALREADY_EXISTS: Final = 6
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
FAILED_PRECONDITION: Final = 9
ABORTED: Final = 10
OUT_OF_RANGE: Final = 11
UNIMPLEMENTED: Final = 12
INTERNAL: Final = 13
UNAVAILABLE: Final = 14
DATA_LOSS: Final = 15
UNAUTHENTICATED: Final = 16


class CancelledError(DualflowError):
    """A program ended an operation before its end."""

    error_code = CANCELLED


class UnknownError(DualflowError):
    """Something of which nothing is known."""

    error_code = UNKNOWN


class DeadlineExceededError(DualflowError, TimeoutError):
    """An operation that took too long."""

    error_code = DEADLINE_EXCEEDED


class AlreadyExistsError(DualflowError, FileExistsError):
    """What was to be made is there."""

    error_code = ALREADY_EXISTS


class PermissionDeniedError(DualflowError, PermissionError):
    """What the caller may not do."""

    error_code = PERMISSION_DENIED


class AbortedError(DualflowError):
    """An operation that gave way to another one."""

    error_code = ABORTED


class UnimplementedError(DualflowError, NotImplementedError):
    """What nobody has written."""

    error_code = UNIMPLEMENTED


class UnavailableError(DualflowError, ConnectionError):
    """What is not in reach at the moment."""

    error_code = UNAVAILABLE


class DataLossError(DualflowError):
    """Data that are lost or corrupt."""

    error_code = DATA_LOSS


class UnauthenticatedError(DualflowError):
    """A caller that nobody knows."""

    error_code = UNAUTHENTICATED
