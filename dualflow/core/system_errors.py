"""Conversion of the operating system's errors to dualflow's, with the file's name."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from dualflow.core.errors import (
    DualflowError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from dualflow.core.status_errors import AlreadyExistsError, PermissionDeniedError, UnknownError

_KINDS: Final[dict[int, type[DualflowError]]] = {
    errno.ENOENT: NotFoundError,
    errno.EISDIR: FailedPreconditionError,
    errno.ENOTDIR: FailedPreconditionError,
    errno.EEXIST: AlreadyExistsError,
    errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError,
    errno.EROFS: PermissionDeniedError,
    errno.ENOSPC: ResourceExhaustedError,
    errno.EDQUOT: ResourceExhaustedError,
    errno.EFBIG: ResourceExhaustedError,
    errno.EMFILE: ResourceExhaustedError,
    errno.ENFILE: ResourceExhaustedError,
    errno.ENOMEM: ResourceExhaustedError,
    errno.ENAMETOOLONG: InvalidArgumentError,
    errno.ELOOP: InvalidArgumentError,
}


def kind_of(error: OSError, other: type[DualflowError] = UnknownError) -> type[DualflowError]:
    """dualflow's error class for a system error; ``other`` if there is none."""
    return _KINDS.get(error.errno or 0, other)


@contextmanager
def system_errors(path: Any) -> Iterator[None]:
    """A context manager that converts errors of the operating system to dualflow's, which name ``path``."""
    try:
        yield
    except DualflowError:  # some of them are OSErrors
        raise
    except OSError as error:
        raise kind_of(error)(f"{os.fsdecode(path)}: {error.strerror or error}.") from error
    except ValueError as error:
        if "null" not in str(error):
            raise
        name = os.fsdecode(path)
        raise InvalidArgumentError(f"{name!r} is no name of a file: it has a null character.") from None
