"""Compiled objects on disk, so that the next process needs no compiler.

An entry is one file named by its key: a magic line, the SHA-256 of the payload, the payload. The digest tells
a damaged entry from a good one. It is no signature: whoever may write an entry may run code in this process.
So a folder or an entry that belongs to another user, or that others may write to, is not used, with one
warning. (Windows keeps no such modes: there the folder of the user's own profile is trusted, and so is one
that ``DUALFLOW_CACHE_DIR`` names.)

A write goes to a temporary file and is renamed over the entry, so that readers and rival writers see a whole
file or none. The cache can only help: a folder that can't be read or written behaves like an empty one, and
nothing is raised.
"""

from __future__ import annotations

import itertools
import os
import stat
import sys
import time

from dualflow.backends.runtime import switches
from dualflow.backends.runtime.digest import SIZE, digest
from dualflow.core.warning import warn_user

CACHE_BYTES = 512 << 20
"""Bytes the folder may hold before the entries least recently written or read are removed."""

_MAGIC = b"dualflow object 2\n"
_HEADER = len(_MAGIC) + SIZE
_SUFFIX = ".dfo"
_TEMPORARY = ".tmp"
_STALE_SECONDS = 3600.0
_TOUCH_SECONDS = 86400.0
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_serial = itertools.count()
_warned: set[str] = set()


def folder() -> str | None:
    """The folder of the entries, or None where caching is off or no home folder is known.

    ``DUALFLOW_CACHE_DIR`` names it; set to the empty string it turns the cache off, as ``cache`` in
    ``DUALFLOW_DISABLE`` does. Otherwise it is the platform's cache folder: ``$XDG_CACHE_HOME/dualflow`` or
    ``~/.cache/dualflow``, ``~/Library/Caches/dualflow`` on macOS, ``%LOCALAPPDATA%\\dualflow`` on Windows.
    """
    if switches.off("cache"):
        return None
    chosen = os.environ.get("DUALFLOW_CACHE_DIR")
    if chosen is not None:
        return os.path.abspath(chosen) if chosen else None
    parent = _platform_cache_folder()
    return os.path.join(parent, "dualflow") if os.path.isabs(parent) else None


def unavailable_reason() -> str:
    """Why no objects are kept on disk; the empty string where they are."""
    where = folder()
    if where is None:
        unset = "DUALFLOW_CACHE_DIR" not in os.environ
        reason = "no home folder is known" if unset else "DUALFLOW_CACHE_DIR is empty"
        return switches.off("cache") or reason
    return _distrust(where)


def sizes() -> list[int]:
    """The bytes of each entry in the folder."""
    where = folder()
    if where is None:
        return []
    try:
        with os.scandir(where) as entries:
            return [entry.stat().st_size for entry in entries if entry.name.endswith(_SUFFIX)]
    except OSError:
        return []


def load(key: str) -> bytes | None:
    """The object stored under ``key``, or None when there is none that is whole and our own.

    >>> load("0" * 64) is None
    True
    """
    where = _trusted_folder()
    if where is None:
        return None
    try:
        content = _read(os.path.join(where, key + _SUFFIX))
    except OSError:
        return None
    payload = content[_HEADER:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : _HEADER] != digest(payload):
        return None
    return payload


def has(key: str) -> bool:
    """Whether there is an entry under ``key``, which may be damaged.

    >>> has("0" * 64)
    False
    """
    where = _trusted_folder()
    return where is not None and os.path.exists(os.path.join(where, key + _SUFFIX))


def store(key: str, payload: bytes) -> None:
    """Keep ``payload`` under ``key`` for later processes, if the folder lets us.

    ``key`` is a hexadecimal digest: it becomes the file's name.
    """
    where = _trusted_folder()
    if where is None:
        return
    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        _write(where, key, _MAGIC + digest(payload) + payload)
    except OSError:
        return
    if int(key[:2], 16) < 4:  # one key in 64 pays for looking at the whole folder
        evict(where, CACHE_BYTES)


def evict(where: str, limit: int) -> None:
    """Remove the oldest entries of a folder until at most ``limit`` bytes are left.

    Safe while other processes read, write and evict: a file that vanished meanwhile is somebody else's
    success. Temporary files that a killed writer left behind go too.
    """
    entries: list[tuple[float, int, str]] = []
    now = time.time()
    try:
        with os.scandir(where) as found:
            for entry in found:
                if not entry.name.endswith((_SUFFIX, _TEMPORARY)) or not entry.is_file(follow_symlinks=False):
                    continue
                about = entry.stat(follow_symlinks=False)
                if entry.name.endswith(_SUFFIX):
                    entries.append((about.st_mtime, about.st_size, entry.path))
                elif now - about.st_mtime > _STALE_SECONDS:
                    _remove(entry.path)
    except OSError:
        return
    held = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if held <= limit:
            return
        _remove(path)
        held -= size


def _trusted_folder() -> str | None:
    """:func:`folder`, or None where it may hold what others wrote; the first time with a warning."""
    where = folder()
    if where is None:
        return None
    distrust = _distrust(where)
    if not distrust:
        return where
    if where not in _warned:
        _warned.add(where)
        warn_user(
            f"compiled functions are not kept on disk: {distrust}, and what is kept there is run. "
            "Set DUALFLOW_CACHE_DIR to a folder of your own that only you may write to (chmod 700), or to "
            "the empty string to do without."
        )
    return None


def _distrust(where: str) -> str:
    """Why a folder may hold what others wrote; empty if it can't, or does not exist yet.

    A link counts as the folder that it leads to, if the link is the user's own. In a parent folder like
    /tmp, where all may write but only move what is theirs, a folder is safe.
    """
    if not hasattr(os, "geteuid"):
        return ""
    try:
        link, about = os.lstat(where), os.stat(where)
        above = os.stat(os.path.dirname(os.path.realpath(where)))
    except OSError:
        return ""  # reading and writing will find out
    user = os.geteuid()
    for found in (link, about):
        if found.st_uid != user:
            return f"{where} belongs to user {found.st_uid}, and this process to user {user}"
    if about.st_mode & _BY_OTHERS:
        return f"other users may write to {where}"
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        return f"other users may put a folder of theirs in the place of {where}"
    return ""


def _platform_cache_folder() -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA", "")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches")
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")


def _read(path: str) -> bytes:
    # O_NONBLOCK: a pipe that stands in the entry's place must not stop us.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(path, "rb", buffering=0, opener=lambda name, _: os.open(name, flags)) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > CACHE_BYTES or not _is_our_own(about):
            return b""
        content = file.read()
    if time.time() - about.st_mtime > _TOUCH_SECONDS:
        _mark_used(path)
    return content


def _is_our_own(about: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return True
    return about.st_uid == os.geteuid() and not about.st_mode & _BY_OTHERS


def _mark_used(path: str) -> None:
    try:
        os.utime(path)
    except OSError:
        return


def _write(where: str, key: str, content: bytes) -> None:
    temporary = os.path.join(where, f"{key}.{os.getpid()}.{next(_serial)}{_TEMPORARY}")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(content)
        os.replace(temporary, os.path.join(where, key + _SUFFIX))
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
