"""The command ``cache``: the size of the folder with compiled code, and its removal."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Final

from dualflow.backends.runtime import object_cache
from dualflow.cli.call import CommandError
from dualflow.core.report_text import size

CACHE_DESCRIPTION: Final = """\
Print the folder in which compiled code is kept for later processes, and its size, or remove that code.
Functions are then compiled again in the next process; running ones keep what they have loaded.
DUALFLOW_CACHE_DIR names another folder.

  python -m dualflow cache size
  python -m dualflow cache clear
"""


def add_cache_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("action", choices=list(_ACTIONS))


def cache(options: Namespace) -> str:
    """Run ``python -m dualflow cache <action>``; returns the text to print.

    Raises:
        CommandError: no code is kept on disk, or an entry can't be removed.
    """
    folder = object_cache.folder()
    if folder is None:
        raise CommandError(f"no code is kept on disk: {object_cache.unavailable_reason()}.")
    return _ACTIONS[options.action](folder)


def _size(folder: str) -> str:
    return f"{folder}: {_amount(object_cache.sizes())}, at most {size(object_cache.CACHE_BYTES)}"


def _clear(folder: str) -> str:
    before = object_cache.sizes()
    object_cache.clear()
    left = object_cache.sizes()
    if left:
        raise CommandError(
            f"{_amount(left)} of {folder} can't be removed, or another process has added them since: "
            "see whether the folder is yours, and try again."
        )
    return f"{folder}: {_amount(before)} removed"


def _amount(sizes: list[int]) -> str:
    return f"{len(sizes):,} object{'s' * (len(sizes) != 1)}, {size(sum(sizes))}"


_ACTIONS: Final = {"size": _size, "clear": _clear}
