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
from dualflow.eager.replicas import whole_arrays
from dualflow.eager.variable import Variable
from dualflow.graph_mode.default_graph import recording_graph
from dualflow.train.durable import checked_path
from dualflow.train.encoding import Array
from dualflow.train.folder import open_folder, write_folder
from dualflow.train.object_graph import LiveNode, live_graph, reject_graph_variables
from dualflow.train.restoration import Restoration, restore_deferred
from dualflow.train.saved_graph import to_json, variables_in
from dualflow.train.shared_files import WRITE_ONCE
from dualflow.train.state_file import update_checkpoint_state
from dualflow.train.status import CheckpointLoadStatus
from dualflow.train.trackable import can_hold_state, children_of, slots_of

_COUNTER: Final = "save_counter"
_OWN: Final = frozenset({"_root", "_counter", "_lock"})


@entry
class Checkpoint:
    """Saves and restores the values of all variables that are reachable from its objects.

    Objects are reached from this one by attribute names, list indices and dict keys: modules, instances of
    users' classes, optimizers with their slots, generators, iterators over datasets, other checkpoints. They
    are restored by the same names. Variables that are created after a restore are restored when they are
    first read.

    A checkpoint is a folder with the arrays in the safetensors format and the rest in JSON. Writing is
    atomic: a crash leaves the complete old checkpoint or the complete new one.

    Args:
        root: an object whose children become the checkpoint's own.
        kwargs: more objects, by name.

    Raises:
        InvalidArgumentError: an object can't hold variables, or ``root`` has another object of that name.

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
    def __init__(self, root: object = None, **kwargs: Any) -> None:
        self._lock = threading.RLock()
        self._root = root
        self._counter: Variable | None = None
        if root is not None:
            _check_holder("the root", root)
            if isinstance(root, Variable):
                raise InvalidArgumentError(
                    "The root of a checkpoint must be an object that holds variables. Pass a variable by "
                    "name: df.train.Checkpoint(v=v)."
                )
        for name, obj in kwargs.items():
            _check_holder(name, obj)
            root_child = children_of(root).get(name) if root is not None else None
            if root_child is not None and root_child is not obj:
                raise InvalidArgumentError(
                    f"Cannot create a Checkpoint with keyword argument {name}: the root has another "
                    "object of that name."
                )
            setattr(self, name, obj)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if initial_values.restorations and name not in _OWN:
            restore_deferred()

    @property
    def root(self) -> Any:
        """The object whose children are the checkpoint's own; the checkpoint itself by default."""
        return self if self._root is None else self._root

    @property
    def save_counter(self) -> Variable:
        """The number of calls of :meth:`save`, an int64 variable that is saved and restored as well."""
        with self._lock, dispatch.using(EAGER):
            if self._counter is None:
                self._counter = Variable(0, trainable=False, name=_COUNTER, dtype=int64)
            return self._counter

    def _trackable_children(self) -> Mapping[str, Any]:
        children = {name: obj for name, obj in vars(self).items() if name not in _OWN}
        counter = {} if self._counter is None else {_COUNTER: self._counter}
        of_root = {} if self._root is None else children_of(self._root)
        return {**counter, **of_root, **children}

    def _slot_variables(self) -> Iterable[tuple[Variable, str, Variable]]:
        return [] if self._root is None else slots_of(self._root)

    def save(self, file_prefix: str | os.PathLike[str], options: object = None) -> str:
        """Save at the path ``file_prefix-N``, where N counts the saves, and return the path.

        It becomes the folder's :func:`latest_checkpoint`.

        Args:
            file_prefix: the path without the number; missing folders are created.
            options: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: ``file_prefix`` is empty.
            FailedPreconditionError: it is called in a ``df.function``, where :meth:`write` can be used; or a
                variable belongs to an explicit graph.
            ResourceExhaustedError: the disk is full; earlier checkpoints are unchanged.
            PermissionDeniedError: the user may not write there.
            DTypeError: an object's state can't be serialized to JSON.
        """
        prefix = checked_path(file_prefix)
        if not dispatch.current().eager:
            raise FailedPreconditionError(
                "Checkpoint.save() counts and names checkpoints, which a graph can't do: call it outside of "
                "the df.function, or use Checkpoint.write() in it, which writes to one path."
            )
        with counted_save(self) as number:
            path = self.write(f"{prefix}-{number}")
            WRITE_ONCE.value(path, lambda: update_checkpoint_state(os.path.dirname(path) or ".", path))
        return path

    def write(self, file_prefix: str | os.PathLike[str], options: object = None) -> str:
        """Save at the path ``file_prefix``, without counting, and return the path.

        In a ``df.function``, each call of the function writes the present values.

        Args:
            file_prefix: the path.
            options: ignored; as in TensorFlow.

        Raises:
            FailedPreconditionError, ResourceExhaustedError, PermissionDeniedError, DTypeError: as in
                :meth:`save`.
        """
        path = checked_path(file_prefix)
        restore_deferred()
        if recording_graph() is not None:
            raise FailedPreconditionError(
                "Checkpoint.write() can't be recorded in an explicit graph: save with "
                "df.compat.v1.train.Saver, which takes a session."
            )
        nodes = live_graph(self, self._root)
        variables = variables_in(nodes)
        if dispatch.current().eager:
            reject_graph_variables(nodes)
            tensors = updates.values_of(list(variables.values()))
            _write(path, nodes, dict(zip(variables, [t._array for t in tensors], strict=True)))
        else:
            numpy_function(
                lambda *arrays: _write(path, nodes, dict(zip(variables, arrays, strict=True))),
                list(variables.values()),
                [],
            )
        return path

    def restore(
        self, save_path: str | os.PathLike[str] | None, options: object = None
    ) -> CheckpointLoadStatus:
        """Restore the objects' values from a checkpoint that :meth:`save` has written.

        Either all objects are restored, or none if there is an error. The restoration of objects that don't
        exist yet is deferred; see the status.

        Args:
            save_path: the path that :meth:`save` returned; None restores nothing.
            options: ignored; as in TensorFlow.

        Raises:
            NotFoundError: there is no checkpoint at ``save_path``.
            DataLossError: it is damaged.
            InvalidArgumentError: a variable has another shape or dtype than its saved value.
            FailedPreconditionError: it is called in a ``df.function``, or a variable belongs to an explicit
                graph.
        """
        self.save_counter  # noqa: B018  # created here, to be restored with the others
        return self._load(save_path, ())

    def read(self, save_path: str | os.PathLike[str] | None, options: object = None) -> CheckpointLoadStatus:
        """:meth:`restore` for checkpoints by :meth:`write`: leaves :attr:`save_counter` unchanged."""
        return self._load(save_path, (_COUNTER,))

    def _load(self, save_path: Any, skipped: tuple[str, ...]) -> CheckpointLoadStatus:
        if not dispatch.current().eager:
            raise FailedPreconditionError(
                "A checkpoint can be restored only outside of functions and graphs: call restore() before "
                "the df.function."
            )
        if save_path is None:
            return CheckpointLoadStatus(None, self, self._root, skipped)
        restoration = Restoration(open_folder(Path(save_path)), self, self._root, skipped)
        restoration.begin()
        return CheckpointLoadStatus(restoration, self, self._root, (_COUNTER,))


@contextmanager
def counted_save(checkpoint: Checkpoint) -> Iterator[int]:
    """A context in which a checkpoint is saved: counts the save, unless it fails, and yields its number."""
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
    variables = variables_in(nodes)
    arrays = dict(zip(arrays, whole_arrays(map(variables.get, arrays), arrays.values()), strict=True))
    WRITE_ONCE.value(path, lambda: write_folder(Path(path), arrays, to_json(nodes)))


def _check_holder(name: str, obj: Any) -> None:
    if not can_hold_state(obj):
        raise InvalidArgumentError(
            f"A checkpoint saves variables and the objects that hold them, and {name} is {obj!r}: make it "
            "a df.Variable, or leave it out."
        )
