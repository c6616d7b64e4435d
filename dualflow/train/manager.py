"""``df.train.CheckpointManager``: checkpoints in a folder, of which the last few are kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.train.checkpoint import Checkpoint, counted
from dualflow.train.folder import is_checkpoint, remove_folder
from dualflow.train.retention import Retention
from dualflow.train.state_file import get_checkpoint_state, update_checkpoint_state


@entry
class CheckpointManager:
    """Saves a checkpoint into a folder again and again, and removes the oldest ones.

    A manager of a folder that another one has written goes on where that one ended.

    Args:
        checkpoint: what to save.
        directory: the folder; it is made by the first save.
        max_to_keep: how many checkpoints stay; None for all.
        keep_checkpoint_every_n_hours: one in so many hours is kept for good.
        checkpoint_name: how the names of the checkpoints begin.
        step_counter: a variable that counts the steps of a training.
        checkpoint_interval: :meth:`save` saves if ``step_counter`` is so much larger than at the last time.
        init_fn: called by :meth:`restore_or_initialize` where there is nothing to restore.

    Raises:
        InvalidArgumentError: ``max_to_keep`` is not positive, or an interval is given without a counter.

    >>> import tempfile
    >>> import dualflow as df
    >>> v, folder = df.Variable(0), tempfile.TemporaryDirectory()
    >>> manager = df.train.CheckpointManager(df.train.Checkpoint(v=v), folder.name, max_to_keep=2)
    >>> for _ in range(3):
    ...     path = manager.save()
    >>> [path.rpartition("/")[2] for path in manager.checkpoints]
    ['ckpt-2', 'ckpt-3']
    >>> folder.cleanup()
    """

    @entry
    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str | os.PathLike[str],
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise InvalidArgumentError(
                f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}."
            )
        if checkpoint_interval is not None and step_counter is None:
            raise InvalidArgumentError(
                "`step_counter` should be passed if `checkpoint_interval` is not None: a variable that "
                "counts the steps."
            )
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._name = checkpoint_name
        self._counter, self._interval = step_counter, checkpoint_interval
        self._init = init_fn
        self._last_step: int | None = None
        self._kept = Retention(max_to_keep, keep_checkpoint_every_n_hours, time.time())
        self._latest: str | None = None
        self._recover()

    @property
    def checkpoint(self) -> Checkpoint:
        """What is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The least number of steps between two saves."""
        return self._interval

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the last checkpoint; None if there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that may be removed later, the oldest first."""
        return list(self._kept.times)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: Any = None
    ) -> str | None:
        """Save, remove what is too much, and return the checkpoint's path; None if it is too soon.

        Args:
            checkpoint_number: the number in its name, by default the number of saves.
            check_interval: whether ``checkpoint_interval`` counts.
            options: ignored; as in TensorFlow.

        Raises:
            DualflowError: as :meth:`Checkpoint.save` does; all older checkpoints stay then.
        """
        step = None if self._interval is None else int(self._counter)
        if check_interval and self._is_too_soon(step):
            return None
        with counted(self._checkpoint) as saves:
            number = saves if checkpoint_number is None else int(checkpoint_number)
            path = self._checkpoint.write(os.path.join(self._directory, f"{self._name}-{number}"))
            self._kept.add(path, time.time())
            self._latest, self._last_step = path, step
            self._record()
        surplus = self._kept.surplus()
        for old in surplus:  # while the state still names them: if this stops, the next manager goes on
            remove_folder(Path(old))
        if surplus:
            self._record()
        return path

    def restore_or_initialize(self) -> str | None:
        """Restore the last checkpoint and return its path; or else call ``init_fn``, and return None.

        Raises:
            DualflowError: as :meth:`Checkpoint.restore` does.
        """
        if self._latest is not None:
            self._checkpoint.restore(self._latest)
            if self._interval is not None:
                self._last_step = int(self._counter)
            return self._latest
        if self._init is not None:
            self._init()
        return None

    def sync(self) -> None:
        """Nothing: a save has ended when it returns."""

    def _is_too_soon(self, step: int | None) -> bool:
        if step is None or self._last_step is None or self._interval is None:
            return False
        return step - self._last_step < self._interval

    def _recover(self) -> None:
        """Go on from the state that the folder's file tells."""
        state = get_checkpoint_state(self._directory)
        if state is None:
            return
        paths = state.all_model_checkpoint_paths
        times = state.all_model_checkpoint_timestamps or [time.time()] * len(paths)
        for path, saved in zip(paths, times, strict=False):
            if is_checkpoint(Path(path)):
                self._kept.add(path, saved)
            else:
                remove_folder(Path(path))  # what a manager has left that was killed meanwhile
        if is_checkpoint(Path(state.model_checkpoint_path)):
            self._latest = state.model_checkpoint_path
        if state.last_preserved_timestamp is not None:
            self._kept.preserved = state.last_preserved_timestamp

    def _record(self) -> None:
        assert self._latest is not None, "a checkpoint was saved"
        update_checkpoint_state(
            self._directory,
            self._latest,
            list(self._kept.times),
            all_model_checkpoint_timestamps=list(self._kept.times.values()),
            last_preserved_timestamp=self._kept.preserved,
        )
