"""TensorFlow's error codes, and error classes that mostly programs raise."""

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
    """An operation was cancelled."""

    error_code = CANCELLED


class UnknownError(DualflowError):
    """An error of an unknown kind."""

    error_code = UNKNOWN


class DeadlineExceededError(DualflowError, TimeoutError):
    """An operation exceeded its time limit."""

    error_code = DEADLINE_EXCEEDED


class AlreadyExistsError(DualflowError, FileExistsError):
    """An entity to be created already exists."""

    error_code = ALREADY_EXISTS


class PermissionDeniedError(DualflowError, PermissionError):
    """The caller lacks a permission."""

    error_code = PERMISSION_DENIED


class AbortedError(DualflowError):
    """An operation was aborted, for example due to a conflict with another one."""

    error_code = ABORTED


class UnimplementedError(DualflowError, NotImplementedError):
    """The operation is not implemented."""

    error_code = UNIMPLEMENTED


class UnavailableError(DualflowError, ConnectionError):
    """A resource is currently unavailable."""

    error_code = UNAVAILABLE


class DataLossError(DualflowError):
    """Data is lost or corrupt."""

    error_code = DATA_LOSS


class UnauthenticatedError(DualflowError):
    """The caller is not authenticated."""

    error_code = UNAUTHENTICATED
