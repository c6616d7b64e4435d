"""The state file ``checkpoint`` of a folder, which lists its checkpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.status_errors import DataLossError
from dualflow.core.system_errors import system_errors
from dualflow.core.tracebacks import entry
from dualflow.train.durable import file_errors, replace_text
from dualflow.train.folder import INDEX, is_checkpoint, remove_folder

STATE: Final = "checkpoint"
_FORMAT: Final = "dualflow checkpoint state"


@dataclass(frozen=True)
class CheckpointState:
    """The content of a state file; paths are absolute, or relative to its folder.

    Attributes:
        model_checkpoint_path: the last checkpoint.
        all_model_checkpoint_paths: the checkpoints that may be removed later, the oldest first.
        all_model_checkpoint_timestamps: their times, in seconds since 1970.
        last_preserved_timestamp: the time of the last checkpoint that is kept permanently.
    """

    model_checkpoint_path: str
    all_model_checkpoint_paths: tuple[str, ...] = ()
    all_model_checkpoint_timestamps: tuple[float, ...] = ()
    last_preserved_timestamp: float | None = None


@entry
def get_checkpoint_state(
    checkpoint_dir: str | os.PathLike[str], latest_filename: str | None = None
) -> CheckpointState | None:
    """The content of a folder's state file; None if there is no such file.

    Args:
        checkpoint_dir: the folder.
        latest_filename: the file's name, by default ``checkpoint``.

    Raises:
        DataLossError: the file is damaged.

    >>> import dualflow as df
    >>> df.train.get_checkpoint_state("no/such/folder") is None
    True
    """
    folder = Path(checkpoint_dir)
    path = folder / (latest_filename or STATE)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError("it has another format")
        return CheckpointState(
            str(folder / content["latest"]),
            tuple(str(folder / name) for name in content["all"]),
            tuple(map(float, content["timestamps"])),
            None if content["last_preserved"] is None else float(content["last_preserved"]),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        with system_errors(path):
            raise error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DataLossError(
            f"The state file {path} is damaged: {error}. The checkpoints in its folder may be intact: "
            "restore one by its path."
        ) from error


@entry
def latest_checkpoint(
    checkpoint_dir: str | os.PathLike[str], latest_filename: str | None = None
) -> str | None:
    """The path of the last checkpoint that was saved in a folder; None if there is none.

    Args:
        checkpoint_dir: the folder.
        latest_filename: the name of its state file, by default ``checkpoint``.

    Raises:
        DataLossError: the state file is damaged.

    >>> import tempfile
    >>> import dualflow as df
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = df.train.Checkpoint(v=df.Variable(1.0)).save(f"{folder}/ckpt")
    ...     df.train.latest_checkpoint(folder) == path
    True
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not is_checkpoint(Path(state.model_checkpoint_path)):
        return None
    return state.model_checkpoint_path


@entry
def update_checkpoint_state(
    save_dir: str | os.PathLike[str],
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write the state file of a folder, atomically.

    Args:
        save_dir: the folder.
        model_checkpoint_path: the last checkpoint.
        all_model_checkpoint_paths: the checkpoints that may be removed later; the last one is added.
        latest_filename: the file's name, by default ``checkpoint``.
        all_model_checkpoint_timestamps: their times.
        last_preserved_timestamp: the time of the last checkpoint that is kept permanently.

    Raises:
        InvalidArgumentError: the numbers of times and paths differ.
    """
    paths = list(all_model_checkpoint_paths or ())
    if model_checkpoint_path not in paths:
        paths.append(model_checkpoint_path)
    times = list(all_model_checkpoint_timestamps or ())
    if times and len(times) != len(paths):
        raise InvalidArgumentError(
            f"There are {len(paths)} checkpoints and {len(times)} timestamps: give one for each."
        )
    folder = Path(save_dir)
    content: dict[str, Any] = {
        "format": _FORMAT,
        "latest": _relative(folder, [model_checkpoint_path])[0],
        "all": _relative(folder, paths),
        "timestamps": times,
        "last_preserved": last_preserved_timestamp,
    }
    with file_errors(f"Writing the state file of {folder}"):
        replace_text(folder / (latest_filename or STATE), json.dumps(content, indent=1) + "\n")


@entry
def checkpoint_exists(checkpoint_prefix: str | os.PathLike[str]) -> bool:
    """Whether there is a checkpoint at that path."""
    return is_checkpoint(Path(checkpoint_prefix))


@entry
def get_checkpoint_mtimes(checkpoint_prefixes: Iterable[str]) -> list[float]:
    """The times at which checkpoints were saved, in seconds since 1970; missing ones are left out."""
    return [path.stat().st_mtime for p in checkpoint_prefixes if (path := Path(p) / INDEX).is_file()]


@entry
def remove_checkpoint(
    checkpoint_prefix: str | os.PathLike[str],
    checkpoint_format_version: object = 2,
    meta_graph_suffix: str = "meta",
) -> None:
    """Remove the checkpoint at that path, if there is one; the other arguments are ignored."""
    remove_folder(Path(checkpoint_prefix))


def _relative(folder: Path, paths: Iterable[str]) -> list[str]:
    """Paths as the file has them: relative in the folder, so that it can be moved; otherwise absolute."""
    return [Path(p).name if Path(p).parent == folder else os.path.abspath(p) for p in paths]
