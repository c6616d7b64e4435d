"""TensorFlow 1's ``Saver``: saves variables by their names, in sessions or eagerly."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from dualflow.core.tracebacks import entry
from dualflow.eager import updates
from dualflow.eager.variable import Variable
from dualflow.graph_mode.default_graph import recording_graph
from dualflow.graph_mode.session import Session
from dualflow.graph_mode.variables import global_variables
from dualflow.train.assign_arrays import assign_arrays, mismatch_reason, raise_for_mismatches
from dualflow.train.durable import checked_path
from dualflow.train.encoding import Array
from dualflow.train.folder import Folder, is_checkpoint, open_folder, remove_folder, write_folder
from dualflow.train.retention import Retention
from dualflow.train.saved_graph import by_name, from_json
from dualflow.train.state_file import update_checkpoint_state

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


@entry
class Saver:
    """Saves and restores variables by their names.

    A session holds the values of a graph's variables; without a graph the session is None.

    Args:
        var_list: variables, or a dict of them by the names to save under; in a graph, all by default.
        max_to_keep: how many checkpoints to keep; None or 0 for all.
        keep_checkpoint_every_n_hours: the interval in hours at which a checkpoint is kept permanently.
        allow_empty: whether the list of variables may be empty; then nothing is saved.
        pad_step_number: whether to pad the number of a step to 8 digits.

    The other arguments are TensorFlow's, and ignored.

    Raises:
        FailedPreconditionError: there is no list of variables, and no graph.
        InvalidArgumentError: there are no variables, or two of the same name.
        DTypeError: something is not a variable.

    >>> import tempfile
    >>> from dualflow.compat import v1
    >>> folder = tempfile.TemporaryDirectory()
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     w = v1.get_variable("w", initializer=[1.0, 2.0])
    ...     session.run(w.initializer)
    ...     saver = v1.train.Saver()
    ...     path = saver.save(session, f"{folder.name}/model", global_step=5)
    ...     cleared = session.run(w.assign([0.0, 0.0]))
    ...     saver.restore(session, path)
    ...     session.run(w)
    array([1., 2.], dtype=float32)
    >>> folder.cleanup()
    """

    @entry
    def __init__(
        self,
        var_list: Sequence[Any] | Mapping[str, Any] | None = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: object = None,
        builder: object = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: object = 2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        self._variables = _variables_by_name(var_list)
        if not self._variables and not allow_empty:
            raise InvalidArgumentError(
                "No variables to save: create them before the Saver, or give it a list or dict of variables."
            )
        self._padded = pad_step_number
        self._retention = Retention(max_to_keep or None, keep_checkpoint_every_n_hours, time.time())

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that this saver may remove later, the oldest first."""
        return list(self._retention.times)

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Set :attr:`last_checkpoints`, to checkpoints that another saver has saved."""
        self._retention.times = dict.fromkeys(last_checkpoints, time.time())

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence[tuple[str, float]]) -> None:
        """:meth:`set_last_checkpoints`, with the time of each, in seconds since 1970."""
        self._retention.times = dict(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """:meth:`set_last_checkpoints` for the paths at which there is a checkpoint."""
        self.set_last_checkpoints([path for path in checkpoint_paths if is_checkpoint(Path(path))])

    def save(
        self,
        sess: object,
        save_path: str | os.PathLike[str],
        global_step: TensorLike | None = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Save the variables at ``save_path``, or at ``save_path-STEP``, and return the path.

        Surplus older checkpoints are removed. A checkpoint at the same path is replaced atomically.

        Args:
            sess: the session that holds the values of a graph's variables.
            save_path: the path; missing folders are created.
            global_step: a number, or a variable that holds it.
            latest_filename: the name of the folder's state file, by default ``checkpoint``.
            write_state: whether to write that file.

        The other arguments are TensorFlow's, and ignored: no graph is saved.

        Raises:
            DTypeError: the variables belong to a graph, and ``sess`` is not a session.
            InvalidArgumentError: ``latest_filename`` is a path.
            FailedPreconditionError: a variable has no value in the session.
            ResourceExhaustedError, PermissionDeniedError: a file operation fails; older checkpoints are
                intact.
        """
        if latest_filename is not None and os.path.basename(latest_filename) != latest_filename:
            raise InvalidArgumentError(
                f"'latest_filename' must not contain path components, and is {latest_filename!r}: the file "
                "is in the checkpoint's folder."
            )
        if not self._variables:
            return None
        path = checked_path(save_path)
        if global_step is not None:
            step = _step_number(global_step, sess)
            path = f"{path}-{step:08d}" if self._padded else f"{path}-{step}"
        values = _read_values(sess, self._variables)
        write_folder(Path(path), values, by_name(self._variables))
        self._retention.add(path, time.time())
        surplus = self._retention.pop_surplus()
        if write_state:
            folder = os.path.dirname(path) or "."
            update_checkpoint_state(folder, path, self.last_checkpoints, latest_filename)
        for old in surplus:
            remove_folder(Path(old))
        return path

    def restore(self, sess: object, save_path: str | os.PathLike[str] | None) -> None:
        """Restore the variables from a checkpoint: all of them, or none after an error.

        Checkpoints by :class:`dualflow.train.Checkpoint` can be restored too, by the names of their
        variables.

        Args:
            sess: the session that holds the values of a graph's variables.
            save_path: the path that :meth:`save` returned.

        Raises:
            InvalidArgumentError: there is no checkpoint, or a value has another shape or dtype.
            NotFoundError: the checkpoint has no value for a variable.
            DataLossError: the checkpoint is damaged.
        """
        if save_path is None:
            raise InvalidArgumentError(
                "Can't load save_path when it is None: df.train.latest_checkpoint returns None where there "
                "is no checkpoint."
            )
        try:
            folder = open_folder(Path(save_path))
        except NotFoundError as error:
            raise InvalidArgumentError(
                f"The passed save_path is not a valid checkpoint: {error.message}"
            ) from error
        keys = {name: _checkpoint_key(folder, name) for name in self._variables}
        reasons = [mismatch_reason(folder, keys[name], v) for name, v in self._variables.items()]
        raise_for_mismatches(folder, [text for text in reasons if text is not None], "nothing has changed")
        if _belong_to_graph(self._variables):
            _assign_in_session(
                _require_session(sess), [(v, folder.read(keys[name])) for name, v in self._variables.items()]
            )
        else:
            assign_arrays(folder, [(v, keys[name]) for name, v in self._variables.items()])


@entry
class EagerSaver:
    """Saves and restores variables by their names, without a session: ``tfe.Saver``.

    Args:
        var_list: variables, or a dict of them by the names to save under.

    Raises:
        InvalidArgumentError: there are no variables, or two of the same name.

    >>> import tempfile
    >>> import dualflow.eager as tfe
    >>> v = tfe.Variable([1.0, 2.0], name="v")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saver = tfe.Saver([v])
    ...     path = saver.save(f"{folder}/model")
    ...     cleared = v.assign([0.0, 0.0])
    ...     saver.restore(path)
    >>> v.numpy()
    array([1., 2.], dtype=float32)
    """

    @entry
    def __init__(self, var_list: Sequence[Any] | Mapping[str, Any]) -> None:
        self._saver = Saver(var_list)

    def save(self, file_prefix: str | os.PathLike[str], global_step: TensorLike | None = None) -> str | None:
        """Save the variables at ``file_prefix``, or at ``file_prefix-STEP``; see :meth:`Saver.save`."""
        return self._saver.save(None, file_prefix, global_step)

    def restore(self, file_prefix: str | os.PathLike[str]) -> None:
        """Restore the variables from a checkpoint; see :meth:`Saver.restore`."""
        self._saver.restore(None, file_prefix)


def _variables_by_name(var_list: Any) -> dict[str, Variable]:
    """The variables by the names to save under."""
    if var_list is None:
        if recording_graph() is None:
            raise FailedPreconditionError(
                "When eager execution is enabled, `var_list` must specify a list or dict of variables to "
                "save."
            )
        var_list = global_variables()
    if isinstance(var_list, Mapping):
        pairs = list(var_list.items())
    else:
        pairs = [(v.name.partition(":")[0] if isinstance(v, Variable) else "", v) for v in var_list]
    named: dict[str, Variable] = {}
    for name, variable in pairs:
        if not isinstance(variable, Variable):
            raise DTypeError(f"A Saver saves variables, and got {variable!r}.")
        if named.setdefault(name, variable) is not variable:
            raise InvalidArgumentError(
                f"At least two variables have the same name: {name}. Give the Saver a dict, with a name "
                "for each."
            )
    return named


def _belong_to_graph(variables: Mapping[str, Variable]) -> bool:
    """Whether the variables belong to a graph, so that sessions hold their values."""
    return any(updates.value_of(v) is None for v in variables.values())


def _require_session(value: Any) -> Session:
    if not isinstance(value, Session):
        raise DTypeError(
            f"'sess' must be a Session, not {value!r}. The variables belong to a graph: pass the session "
            "that holds their values."
        )
    return value


def _step_number(step: Any, session: Any) -> int:
    if isinstance(step, Variable) and updates.value_of(step) is None:
        return int(_require_session(session).run(step))
    if isinstance(step, int | np.integer | Variable) or getattr(step, "shape", None) == ():
        return int(step)
    raise DTypeError(f"`global_step` must be a number or a variable that holds it, not {step!r}.")


def _read_values(session: Any, variables: Mapping[str, Variable]) -> dict[str, Array]:
    if _belong_to_graph(variables):
        return {name: np.asarray(x) for name, x in _require_session(session).run(dict(variables)).items()}
    tensors = updates.values_of(list(variables.values()))
    return {name: t._array for name, t in zip(variables, tensors, strict=True)}


def _assign_in_session(session: Session, values: list[tuple[Variable, Array]]) -> None:
    """Assign values to a graph's variables in a session, in one run and without adding an op."""
    engine = session.graph.engine
    starts = dict(zip(map(id, engine.variables), engine.initial, strict=True))
    assignments = [engine.operation_of(starts[id(v)]) for v, _ in values]
    session.run(
        assignments, {op.inputs[0]: array for op, (_, array) in zip(assignments, values, strict=True)}
    )


def _checkpoint_key(folder: Folder, name: str) -> str:
    """The key under which a checkpoint has the array of the variable ``name``."""
    if name in folder.entries:
        return name
    keys = [node.key for node in from_json(folder) if node.variable == name and node.key is not None]
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise InvalidArgumentError(
            f"{len(keys)} variables of the checkpoint {folder.path} are called {name}: restore it with "
            "df.train.Checkpoint, which identifies them by their paths."
        )
    first_names = ", ".join(sorted(folder.entries)[:5])
    raise NotFoundError(
        f"Key {name} not found in checkpoint {folder.path}, whose first names are {first_names}: save and "
        "restore the same variables, or give the Saver a dict of them by the checkpoint's names."
    )
