"""Compiled objects on disk, so that the next process needs no compiler.

An entry is one file named by its key: a magic line, the digest of the payload, the payload. The digest
detects a damaged entry. It is no signature: a user who may write an entry may run code in this process. So a
folder or an entry that belongs to another user, or that others may write to, is not used, with one warning.
(Windows has no such modes: there the folder of the user's own profile is trusted, and so is one that
``DUALFLOW_CACHE_DIR`` names.)

A write goes to a temporary file, which is renamed over the entry: concurrent readers and writers see a
complete file or none. A folder that can't be read or written behaves like an empty one; nothing is raised.
"""

from __future__ import annotations

import itertools
import os
import stat
import sys
import time

from dualflow.backends.runtime import switches
from dualflow.core.digest import SIZE, digest
from dualflow.core.spans import logger
from dualflow.core.warning import warn_user

CACHE_BYTES = 512 << 20
"""The maximum size of the folder in bytes; the least recently used entries are removed beyond it."""

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
    """The folder of the entries; None if caching is off or there is no home folder.

    ``DUALFLOW_CACHE_DIR`` names it; set to the empty string it disables the cache, as ``cache`` in
    ``DUALFLOW_DISABLE`` does. Otherwise it is the platform's cache folder: ``$XDG_CACHE_HOME/dualflow`` or
    ``~/.cache/dualflow``, ``~/Library/Caches/dualflow`` on macOS, ``%LOCALAPPDATA%\\dualflow`` on Windows.
    """
    if switches.off("cache"):
        return None
    setting = os.environ.get("DUALFLOW_CACHE_DIR")
    if setting is not None:
        return os.path.abspath(setting) if setting else None
    parent = _platform_cache_folder()
    return os.path.join(parent, "dualflow") if os.path.isabs(parent) else None


def unavailable_reason() -> str:
    """The reason that objects are not cached on disk; the empty string if they are."""
    directory = folder()
    if directory is None:
        unset = "DUALFLOW_CACHE_DIR" not in os.environ
        reason = "there is no home folder" if unset else "DUALFLOW_CACHE_DIR is empty"
        return switches.off("cache") or reason
    return _distrust(directory)


def sizes() -> list[int]:
    """The bytes of each entry in the folder."""
    directory = folder()
    if directory is None:
        return []
    try:
        with os.scandir(directory) as entries:
            return [entry.stat().st_size for entry in entries if entry.name.endswith(_SUFFIX)]
    except OSError:
        return []


def load(key: str) -> bytes | None:
    """The object stored under ``key``; None if there is no intact entry of this user.

    >>> load("0" * 64) is None
    True
    """
    payload = _payload(key)
    _log(key, "is not on disk" if payload is None else f"loaded, {len(payload)} bytes")
    return payload


def _payload(key: str) -> bytes | None:
    """The intact content of the entry for ``key`` in a trusted folder; None if there is none."""
    directory = _trusted_folder()
    if directory is None:
        return None
    try:
        content = _read(os.path.join(directory, key + _SUFFIX))
    except OSError:
        return None
    payload = content[_HEADER:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : _HEADER] != digest(payload):
        return None
    return payload


def has(key: str) -> bool:
    """Whether there is an entry under ``key``; it may be damaged.

    >>> has("0" * 64)
    False
    """
    directory = _trusted_folder()
    return directory is not None and os.path.exists(os.path.join(directory, key + _SUFFIX))


def store(key: str, payload: bytes) -> None:
    """Store ``payload`` under ``key`` for later processes, if the folder is writable.

    ``key`` is a hexadecimal digest, the file's name.
    """
    directory = _trusted_folder()
    if directory is None:
        return
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        _write(directory, key, _MAGIC + digest(payload) + payload)
    except OSError as error:
        _log(key, f"can't be stored in {directory}: {error.strerror}")
        return
    _log(key, f"stored, {len(payload)} bytes")
    if key.startswith("00"):  # one store in 256 scans the folder
        evict(directory, CACHE_BYTES)


def _log(key: str, outcome: str) -> None:
    log = logger("cache")
    if log is not None:
        log.info("%s %s", key[:12], outcome)


def evict(directory: str, limit: int) -> None:
    """Remove the oldest entries of a folder until at most ``limit`` bytes are left.

    Safe while other processes read, write and evict: a file that another process has removed is skipped.
    Stale temporary files of killed writers are removed too.
    """
    entries: list[tuple[float, int, str]] = []
    now = time.time()
    try:
        with os.scandir(directory) as files:
            for entry in files:
                if not entry.name.endswith((_SUFFIX, _TEMPORARY)) or not entry.is_file(follow_symlinks=False):
                    continue
                status = entry.stat(follow_symlinks=False)
                if entry.name.endswith(_SUFFIX):
                    entries.append((status.st_mtime, status.st_size, entry.path))
                elif now - status.st_mtime > _STALE_SECONDS:
                    _remove(entry.path)
    except OSError:
        return
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            return
        _remove(path)
        total -= size


def clear() -> None:
    """Remove all entries from the folder, and the stale temporary files of killed writers.

    Other files of the folder are left, and so are entries that this user may not remove. Processes that run
    go on with the code that they have loaded.
    """
    directory = folder()
    if directory is not None:
        evict(directory, -1)


def _trusted_folder() -> str | None:
    """:func:`folder`; None if other users may have written to it, with a warning the first time."""
    directory = folder()
    if directory is None:
        return None
    distrust = _distrust(directory)
    if not distrust:
        return directory
    if directory not in _warned:
        _warned.add(directory)
        warn_user(
            f"compiled functions are not kept on disk: {distrust}, and its entries are executed. "
            "Set DUALFLOW_CACHE_DIR to a folder of your own that only you may write to (chmod 700), or to "
            "the empty string to do without."
        )
    return None


def _distrust(directory: str) -> str:
    """The reason that a folder is not trusted: other users may write to it. Empty if it is trusted.

    A link counts as its target, if the link is the user's own. A folder is safe in a parent folder like /tmp,
    where all may write but can rename only their own files (the sticky bit).
    """
    if not hasattr(os, "geteuid"):
        return ""
    try:
        link = os.lstat(directory)
        target = os.stat(directory) if stat.S_ISLNK(link.st_mode) else link
        parent = os.stat(os.path.join(directory, os.pardir))  # of the target
    except OSError:
        return ""  # reading and writing handle this
    user = os.geteuid()
    for owned in (link, target):
        if owned.st_uid != user:
            return f"{directory} belongs to user {owned.st_uid}, and this process to user {user}"
    if target.st_mode & _BY_OTHERS:
        return f"other users may write to {directory}"
    if parent.st_mode & stat.S_IWOTH and not parent.st_mode & stat.S_ISVTX:
        return f"other users may replace {directory}"
    return ""


def _platform_cache_folder() -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA", "")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches")
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")


def _read(path: str) -> bytes:
    # O_NONBLOCK: opening a named pipe in place of the entry must not block.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(path, "rb", buffering=0, opener=lambda name, _: os.open(name, flags)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > CACHE_BYTES or not _is_our_own(status):
            return b""
        content = file.read()
    if time.time() - status.st_mtime > _TOUCH_SECONDS:
        _mark_used(path)
    return content


def _is_our_own(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & _BY_OTHERS


def _mark_used(path: str) -> None:
    try:
        os.utime(path)
    except OSError:
        return


def _write(directory: str, key: str, content: bytes) -> None:
    temporary = os.path.join(directory, f"{key}.{os.getpid()}.{next(_serial)}{_TEMPORARY}")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(content)
        os.replace(temporary, os.path.join(directory, key + _SUFFIX))
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
