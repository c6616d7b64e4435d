"""``df.train.CheckpointManager``: a folder of checkpoints, of which the most recent ones are kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.train.checkpoint import Checkpoint, counted_save
from dualflow.train.folder import is_checkpoint, remove_folder
from dualflow.train.retention import Retention
from dualflow.train.shared_files import WRITE_ONCE
from dualflow.train.state_file import get_checkpoint_state, update_checkpoint_state

if TYPE_CHECKING:
    from typing import SupportsInt


@entry
class CheckpointManager:
    """Saves checkpoints into a folder, and removes the oldest ones.

    A manager of an existing folder continues with the checkpoints in it.

    Args:
        checkpoint: what to save.
        directory: the folder; the first save creates it.
        max_to_keep: how many checkpoints to keep; None for all.
        keep_checkpoint_every_n_hours: the interval in hours at which a checkpoint is kept permanently.
        checkpoint_name: the prefix of the checkpoints' names.
        step_counter: a variable that counts the training steps.
        checkpoint_interval: the number of steps by ``step_counter`` between two saves.
        init_fn: called by :meth:`restore_or_initialize` if there is nothing to restore.

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
        step_counter: SupportsInt | None = None,
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
        self._counter: Any = step_counter
        self._interval = checkpoint_interval
        self._init = init_fn
        self._last_step: int | None = None
        self._retention = Retention(max_to_keep, keep_checkpoint_every_n_hours, time.time())
        self._latest: str | None = None
        self._recover()

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The minimum number of steps between two saves."""
        return self._interval

    @property
    def directory(self) -> str:
        """The folder of the checkpoints."""
        return self._directory

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the last checkpoint; None if there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that may be removed later, the oldest first."""
        return list(self._retention.times)

    def save(
        self,
        checkpoint_number: SupportsInt | None = None,
        check_interval: bool = True,
        options: object = None,
    ) -> str | None:
        """Save, remove surplus checkpoints, and return the path; None if ``checkpoint_interval`` isn't over.

        Args:
            checkpoint_number: the number in its name, by default the number of saves.
            check_interval: whether to respect ``checkpoint_interval``.
            options: ignored; as in TensorFlow.

        Raises:
            DualflowError: as in :meth:`Checkpoint.save`; no checkpoint is removed then.
        """
        step = None if self._interval is None else int(self._counter)
        if check_interval and self._is_too_soon(step):
            return None
        with counted_save(self._checkpoint) as saves:
            number = saves if checkpoint_number is None else int(checkpoint_number)
            path = self._checkpoint.write(os.path.join(self._directory, f"{self._name}-{number}"))
            self._retention.add(path, time.time())
            self._latest, self._last_step = path, step
            WRITE_ONCE.value(path, self._record)
        surplus = self._retention.pop_surplus()  # by this worker's clock: other workers may have another
        WRITE_ONCE.value(path, lambda: self._remove(surplus))
        return path

    def restore_or_initialize(self) -> str | None:
        """Restore the last checkpoint and return its path; without one, call ``init_fn`` and return None.

        Raises:
            DualflowError: as in :meth:`Checkpoint.restore`.
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
        """Does nothing: saves are synchronous."""

    def _is_too_soon(self, step: int | None) -> bool:
        if step is None or self._last_step is None or self._interval is None:
            return False
        return step - self._last_step < self._interval

    def _recover(self) -> None:
        """Continue from the folder's state file."""
        state = get_checkpoint_state(self._directory)
        if state is None:
            return
        paths = state.all_model_checkpoint_paths
        times = state.all_model_checkpoint_timestamps or [time.time()] * len(paths)
        for path, saved in zip(paths, times, strict=False):
            if is_checkpoint(Path(path)):
                self._retention.add(path, saved)
            else:
                remove_folder(Path(path))  # left by a manager that was killed
        if is_checkpoint(Path(state.model_checkpoint_path)):
            self._latest = state.model_checkpoint_path
        if state.last_preserved_timestamp is not None:
            self._retention.preserved = state.last_preserved_timestamp

    def _remove(self, surplus: Sequence[str]) -> None:
        if not surplus:
            return
        for old in surplus:  # the state file still names them: after a crash, the next manager removes them
            remove_folder(Path(old))
        self._record()

    def _record(self) -> None:
        assert self._latest is not None, "a checkpoint was saved"
        update_checkpoint_state(
            self._directory,
            self._latest,
            list(self._retention.times),
            all_model_checkpoint_timestamps=list(self._retention.times.values()),
            last_preserved_timestamp=self._retention.preserved,
        )
