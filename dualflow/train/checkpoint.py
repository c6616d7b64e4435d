"""``df.train.Checkpoint``: the state of objects, saved and restored."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.dtypes import int64
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.eager import initial_values, updates
from dualflow.eager.engine import EAGER
from dualflow.eager.python_call import numpy_function
from dualflow.eager.variable import Variable
from dualflow.graph_mode.default_graph import graph_recording
from dualflow.train.durable import checked_path
from dualflow.train.encoding import Array
from dualflow.train.folder import open_folder, write_folder
from dualflow.train.object_graph import LiveNode, live_graph, refuse_graph_variables
from dualflow.train.restoration import Restoration, look_again
from dualflow.train.saved_graph import to_json, variables_in
from dualflow.train.state_file import update_checkpoint_state
from dualflow.train.status import CheckpointLoadStatus
from dualflow.train.trackable import can_hold_state, children_of, slots_of

_COUNTER: Final = "save_counter"
_OWN: Final = frozenset({"_root", "_counter", "_lock"})


@entry
class Checkpoint:
    """Saves the values of variables that are found from its objects, and restores them.

    Objects are found by the names of attributes and the places in lists and dicts, from this object on:
    ``df.Module`` s, instances of classes of one's own, optimizers with their slots, generators, iterators
    over datasets, other checkpoints. On restoring they are matched by the same names. Variables that are
    created after a restore take their values when they are first read.

    A checkpoint is a folder with the arrays in safetensors' format and the rest in JSON; it is written so
    that a crash leaves the old one or the new one, whole.

    Args:
        root: an object whose children are the checkpoint's own.
        kwargs: more objects, by name.

    Raises:
        InvalidArgumentError: an object can't hold variables, or the root has another one of that name.

    >>> import tempfile
    >>> import dualflow as df
    >>> step, layers = df.Variable(0), [df.Variable([1.0, 2.0])]
    >>> checkpoint = df.train.Checkpoint(step=step, layers=layers)
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = checkpoint.save(f"{folder.name}/ckpt")
    >>> cleared = layers[0].assign([0.0, 0.0])
    >>> status = checkpoint.restore(path)
    >>> status.assert_consumed().restored, layers[0].numpy()
    (['save_counter', 'step', 'layers/0'], array([1., 2.], dtype=float32))
    >>> folder.cleanup()
    """

    @entry
    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._lock = threading.RLock()
        self._root = root
        self._counter: Variable | None = None
        if root is not None:
            _check_holder("the root", root)
            if isinstance(root, Variable):
                raise InvalidArgumentError(
                    "The root of a checkpoint is an object with variables in it. Give a variable by a name: "
                    "df.train.Checkpoint(v=v)."
                )
        for name, thing in kwargs.items():
            _check_holder(name, thing)
            theirs = children_of(root).get(name) if root is not None else None
            if theirs is not None and theirs is not thing:
                raise InvalidArgumentError(
                    f"Cannot create a Checkpoint with keyword argument {name}: the root has another "
                    "object of that name."
                )
            setattr(self, name, thing)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if initial_values.restorations and name not in _OWN:
            look_again()

    @property
    def root(self) -> Any:
        """The object whose children are the checkpoint's own; itself if none was given."""
        return self if self._root is None else self._root

    @property
    def save_counter(self) -> Variable:
        """How often :meth:`save` was called, a variable of dtype int64 that is saved and restored too."""
        with self._lock, dispatch.using(EAGER):
            if self._counter is None:
                self._counter = Variable(0, trainable=False, name=_COUNTER, dtype=int64)
            return self._counter

    def _trackable_children(self) -> Mapping[str, Any]:
        own = {name: thing for name, thing in vars(self).items() if name not in _OWN}
        counter = {} if self._counter is None else {_COUNTER: self._counter}
        theirs = {} if self._root is None else children_of(self._root)
        return {**counter, **theirs, **own}

    def _slot_variables(self) -> Iterable[tuple[Variable, str, Variable]]:
        return [] if self._root is None else slots_of(self._root)

    def save(self, file_prefix: str | os.PathLike[str], options: Any = None) -> str:
        """Save under the path ``file_prefix-N``, where N counts the saves, and return it.

        The folder's :func:`latest_checkpoint` is this one then.

        Args:
            file_prefix: the path without the number; folders that are missing are made.
            options: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: ``file_prefix`` is empty.
            FailedPreconditionError: this is inside of a ``df.function``, where :meth:`write` can be used; or
                a variable belongs to an explicit graph.
            ResourceExhaustedError: the disk is full; what was saved before is as it was.
            PermissionDeniedError: this user may not write there.
            DTypeError: an object's state is not JSON.
        """
        prefix = checked_path(file_prefix)
        if not dispatch.current().eager:
            raise FailedPreconditionError(
                "Checkpoint.save() counts and names checkpoints, which a graph does not repeat: call it "
                "outside of the df.function, or use Checkpoint.write() in it, which writes to one path."
            )
        with counted(self) as number:
            path = self.write(f"{prefix}-{number}")
            update_checkpoint_state(os.path.dirname(path) or ".", path)
        return path

    def write(self, file_prefix: str | os.PathLike[str], options: Any = None) -> str:
        """Save under the path ``file_prefix`` itself, without counting, and return it.

        Inside of a ``df.function`` each call of it writes the values of that moment.

        Args:
            file_prefix: the path.
            options: ignored; as in TensorFlow.

        Raises:
            FailedPreconditionError, ResourceExhaustedError, PermissionDeniedError, DTypeError: as
                :meth:`save` does.
        """
        path = checked_path(file_prefix)
        look_again()
        if graph_recording() is not None:
            raise FailedPreconditionError(
                "Checkpoint.write() can't be recorded in an explicit graph: save with "
                "df.compat.v1.train.Saver, which takes a session."
            )
        nodes = live_graph(self, self._root)
        variables = variables_in(nodes)
        if dispatch.current().eager:
            refuse_graph_variables(nodes)
            tensors = updates.values_of(list(variables.values()))
            _write(path, nodes, dict(zip(variables, [t._array for t in tensors], strict=True)))
        else:
            numpy_function(
                lambda *arrays: _write(path, nodes, dict(zip(variables, arrays, strict=True))),
                list(variables.values()),
                [],
            )
        return path

    def restore(self, save_path: str | os.PathLike[str] | None, options: Any = None) -> CheckpointLoadStatus:
        """Give the objects the values that :meth:`save` has written to ``save_path``.

        All of them take their values, or none where anything is wrong. Values of objects that are not there
        yet wait for them; see the status.

        Args:
            save_path: what :meth:`save` has returned; None restores nothing.
            options: ignored; as in TensorFlow.

        Raises:
            NotFoundError: there is no checkpoint.
            DataLossError: it is damaged.
            InvalidArgumentError: a variable has another shape or dtype than its value.
            FailedPreconditionError: this is inside of a ``df.function``, or a variable belongs to an explicit
                graph.
        """
        self.save_counter  # noqa: B018  # it is restored with the others
        return self._load(save_path, ())

    def read(self, save_path: str | os.PathLike[str] | None, options: Any = None) -> CheckpointLoadStatus:
        """:meth:`restore` of what :meth:`write` has written: the number of saves stays as it is."""
        return self._load(save_path, (_COUNTER,))

    def _load(self, save_path: Any, skipped: tuple[str, ...]) -> CheckpointLoadStatus:
        if not dispatch.current().eager:
            raise FailedPreconditionError(
                "A checkpoint is restored outside of functions and graphs: call restore() before the "
                "df.function."
            )
        if save_path is None:
            return CheckpointLoadStatus(None, self, self._root, skipped)
        restoration = Restoration(open_folder(Path(save_path)), self, self._root, skipped)
        restoration.begin()
        return CheckpointLoadStatus(restoration, self, self._root, (_COUNTER,))


@contextmanager
def counted(checkpoint: Checkpoint) -> Iterator[int]:
    """The block in which a checkpoint is saved for the so-manieth time; if it fails, it does not count."""
    with checkpoint._lock:
        counter = checkpoint.save_counter
        before = counter.value()
        counter.assign_add(1)
        try:
            yield int(counter)
        except BaseException:
            counter.assign(before)
            raise


def _write(path: str, nodes: list[LiveNode], arrays: dict[str, Array]) -> None:
    write_folder(Path(path), arrays, to_json(nodes))


def _check_holder(name: str, thing: Any) -> None:
    if not can_hold_state(thing):
        raise InvalidArgumentError(
            f"A checkpoint keeps variables and the objects that hold them, and {name} is {thing!r}: make it "
            "a df.Variable, or leave it out."
        )
