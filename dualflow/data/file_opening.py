"""Opening of files that may be compressed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO, cast

from dualflow.core.errors import InvalidArgumentError, NotFoundError
from dualflow.core.status_errors import DataLossError
from dualflow.core.system_errors import system_errors
from dualflow.function.errors import here

Opener = Callable[[str], AbstractContextManager[BinaryIO]]


def opener_of(compression: str | None) -> Opener:
    """A function that opens a file by name, and decompresses it.

    While the file is open, errors about it are raised as dualflow's, with its name: NotFoundError,
    DataLossError for damaged compressed data, and system errors.

    Raises:
        InvalidArgumentError: ``compression`` is not None, "" or "GZIP".
    """
    if compression not in (None, "", "GZIP"):
        raise InvalidArgumentError(f"compression_type must be None or 'GZIP', not {compression!r}.{here()}")

    @contextmanager
    def open_file(name: str) -> Iterator[BinaryIO]:
        try:
            with cast(BinaryIO, gzip.open(name)) if compression else open(name, "rb") as file:
                yield file
        except FileNotFoundError:
            raise NotFoundError(f"There is no file {name!r}.{here()}") from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataLossError(f"{name!r} is damaged: {error}; write it again.{here()}") from None
        except (OSError, ValueError) as error:
            with system_errors(name):
                raise error

    return open_file
