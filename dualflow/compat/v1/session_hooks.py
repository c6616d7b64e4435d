"""Hooks of a monitored session: they act before and after each run, as to save, to log, or to stop."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.compat.v1 import logging
from dualflow.compat.v1.coordinator import Coordinator
from dualflow.compat.v1.file_writer import FileWriter
from dualflow.compat.v1.global_step import get_global_step
from dualflow.compat.v1.summary import merge_all
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.graph_mode import Session
from dualflow.train.saver import Saver

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


@dataclass(frozen=True)
class SessionRunArgs:
    """The fetches and feeds that a hook adds to a run.

    Attributes:
        fetches: tensors, or a structure of them.
        feed_dict: more feeds.
        options: ignored.
    """

    fetches: object
    feed_dict: Mapping[Any, Any] | None = None
    options: object = None


@dataclass(frozen=True)
class SessionRunValues:
    """The results of a run that a hook receives.

    Attributes:
        results: the values of its fetches.
        options: None.
        run_metadata: None.
    """

    results: object
    options: object = None
    run_metadata: object = None


class SessionRunContext:
    """The context of one ``Session.run`` call, which its hooks receive.

    Attributes:
        original_args: the fetches and feeds of the caller.
        session: the session.
        stop_requested: whether a hook has requested the end of training.
        step: the global step after the run, once a hook has read it.
    """

    def __init__(self, original_args: SessionRunArgs, session: Session) -> None:
        self.original_args = original_args
        self.session = session
        self.stop_requested = False
        self.step: int | None = None

    def request_stop(self) -> None:
        """End the training: ``should_stop()`` is true after this run."""
        self.stop_requested = True


class SessionRunHook:
    """The base of hooks, whose methods do nothing."""

    def begin(self) -> None:
        """Called once, before the session exists; the hook may add to the graph."""

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Called once, when the variables have values."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; returns what to add to it."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run."""

    def end(self, session: Session) -> None:
        """Called once at the end, unless an error has ended the training."""


class _StepHook(SessionRunHook):
    """A hook that reads the global step."""

    def begin(self) -> None:
        self._global_step: Any = get_global_step()
        if self._global_step is None:
            raise FailedPreconditionError(
                f"{type(self).__name__} needs a global step: call get_or_create_global_step() in the graph."
            )

    def _step_after(self, run_context: SessionRunContext) -> int:
        """The global step after a run, which its hooks read once."""
        if run_context.step is None:
            run_context.step = int(run_context.session.run(self._global_step))
        return run_context.step


class StopAtStepHook(_StepHook):
    """Ends the training at a step.

    Args:
        num_steps: the number of steps from the first run on.
        last_step: the global step at which to end, instead.

    Raises:
        InvalidArgumentError: both or neither are set.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise InvalidArgumentError("One of num_steps or last_step must be specified, and not both.")
        self._num_steps = num_steps
        self._last_step = last_step

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        if self._num_steps is not None:
            self._last_step = int(session.run(self._global_step)) + self._num_steps

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        assert self._last_step is not None, "after_create_session has set it"
        if self._step_after(run_context) >= self._last_step:
            run_context.request_stop()


class CheckpointSaverHook(_StepHook):
    """Saves the variables at an interval of steps or seconds, and at the end.

    Args:
        checkpoint_dir: the folder.
        save_secs, save_steps: the interval, one of both.
        saver: by default one of all variables.
        checkpoint_basename: the beginning of the names of checkpoints.

    Raises:
        InvalidArgumentError: both or neither interval.
    """

    def __init__(
        self,
        checkpoint_dir: str | os.PathLike[str],
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Saver | None = None,
        checkpoint_basename: str = "model.ckpt",
    ) -> None:
        if (save_secs is None) == (save_steps is None):
            raise InvalidArgumentError("Exactly one of save_secs and save_steps must be provided.")
        self._path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._interval = save_secs, save_steps
        self._saver = saver
        self._saved_step = -1
        self._saved_time = 0.0

    def begin(self) -> None:
        super().begin()
        self._saver = self._saver or Saver()

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        self._save(session)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        seconds, steps = self._interval
        if steps is not None:
            due = self._step_after(run_context) >= self._saved_step + steps
        else:
            due = time.monotonic() >= self._saved_time + (seconds or 0)
        if due:
            self._save(run_context.session)

    def end(self, session: Session) -> None:
        self._save(session)

    def _save(self, session: Any) -> None:
        step = int(session.run(self._global_step))
        if step != self._saved_step:
            assert self._saver is not None, "begin has made it"
            self._saver.save(session, self._path, global_step=step)
            self._saved_step, self._saved_time = step, time.monotonic()


class SummarySaverHook(_StepHook):
    """Writes summaries at an interval of steps.

    Args:
        save_steps: the interval.
        output_dir: the folder of the event file.
        summary_op: by default all summaries of the graph.
    """

    def __init__(
        self, save_steps: int = 100, output_dir: str | None = None, summary_op: TensorLike | None = None
    ) -> None:
        self._steps = save_steps
        self._folder = output_dir
        self._summary = summary_op
        self._next = 0

    def begin(self) -> None:
        super().begin()
        self._summary = merge_all() if self._summary is None else self._summary
        self._writer = None if self._summary is None else FileWriter(self._folder or ".")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        if self._writer is None or int(run_context.session.run(self._global_step)) < self._next:
            return None
        return SessionRunArgs(self._summary)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._writer is not None and run_values.results is not None:
            step = self._step_after(run_context)
            self._writer.add_summary(run_values.results, step)
            self._next = step + self._steps

    def end(self, session: Session) -> None:
        if self._writer is not None:
            self._writer.close()


class LoggingTensorHook(SessionRunHook):
    """Logs the values of tensors at level INFO of ``v1.logging``.

    Args:
        tensors: tensors by their names, or a list of them.
        every_n_iter: the number of runs from one message to the next; None for none.
        at_end: whether to log at the end.
        formatter: a function of the dict of values that returns the message.
    """

    def __init__(
        self,
        tensors: Mapping[str, Any] | Sequence[Any],
        every_n_iter: int | None = None,
        every_n_secs: None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        if every_n_secs is not None or (every_n_iter is None and not at_end):
            raise InvalidArgumentError("LoggingTensorHook takes every_n_iter, or at_end.")
        self._tensors = dict(tensors) if isinstance(tensors, Mapping) else {str(t): t for t in tensors}
        self._interval = every_n_iter
        self._at_end = at_end
        self._formatter = formatter or _message
        self._runs = 0

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        due = self._interval is not None and self._runs % self._interval == 0
        return SessionRunArgs(self._tensors) if due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._runs += 1
        if run_values.results is not None:
            logging.info(self._formatter(_values_of(run_values)))

    def end(self, session: Session) -> None:
        if self._at_end:
            logging.info(self._formatter(session.run(self._tensors)))


class NanTensorHook(SessionRunHook):
    """Ends the training if a loss is nan.

    Args:
        loss_tensor: the loss.
        fail_on_nan_loss: whether to raise NanLossDuringTrainingError, rather than to stop.
    """

    def __init__(self, loss_tensor: TensorLike, fail_on_nan_loss: bool = True) -> None:
        self._loss = loss_tensor
        self._fails = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if np.isnan(_values_of(run_values)).any():
            if self._fails:
                raise NanLossDuringTrainingError(
                    "NaN loss during training: a smaller learning rate, or clipped gradients, may help."
                )
            run_context.request_stop()


class NanLossDuringTrainingError(FailedPreconditionError):
    """A loss is nan."""


def _values_of(run_values: SessionRunValues) -> Any:
    return run_values.results


def _message(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


class FeedFnHook(SessionRunHook):
    """Feeds each run with what a function returns.

    Args:
        feed_fn: returns the feeds, as a dict.
    """

    def __init__(self, feed_fn: Callable[[], Mapping[Any, Any]]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())


class FinalOpsHook(SessionRunHook):
    """Runs operations once, at the end.

    Args:
        final_ops: tensors or operations, or a structure of them.
        final_ops_feed_dict: the feeds of their run.

    Attributes:
        final_ops_values: their values; None before the end.
    """

    def __init__(self, final_ops: object, final_ops_feed_dict: Mapping[Any, Any] | None = None) -> None:
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self.final_ops_values: Any = None

    def end(self, session: Session) -> None:
        if self._final_ops is not None:
            self.final_ops_values = session.run(self._final_ops, self._final_ops_feed_dict)
