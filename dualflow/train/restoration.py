"""Restoration of objects from a checkpoint: of existing objects at once, deferred for others.

While values remain, the restoration is one of ``eager.initial_values.restorations``: before a variable that
is created meanwhile is first read, deferred restorations look for it. They search below *deferred roots*:
objects that have matched a node with unrestored values below it. A restoration doesn't keep them alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.eager import initial_values
from dualflow.eager.engine import EAGER
from dualflow.eager.variable import Variable
from dualflow.train.assign_arrays import assign_arrays, mismatch_reason, raise_for_mismatches
from dualflow.train.folder import Folder
from dualflow.train.matching import Matches, match, match_by_name, parents_in
from dualflow.train.object_graph import live_graph, reject_graph_variables
from dualflow.train.reachability import ancestors_of
from dualflow.train.saved_graph import SavedNode, from_json, is_flat, names_of
from dualflow.train.trackable import set_state, state_of


class _Unrestored(Enum):
    """The reason why an object has no value from this checkpoint.

    Attributes:
        MISFIT: the value of its node didn't fit.
        SUPERSEDED: a newer checkpoint has restored the object.
    """

    MISFIT = auto()
    SUPERSEDED = auto()


class Restoration:
    """The restoration of objects from one checkpoint.

    Args:
        folder: the checkpoint.
        root: the object that matches the checkpoint's root.
        alias: an object that is treated as the same node as the root.
        skipped: names of the root's children that are not restored.

    Attributes:
        saved: the nodes of the checkpoint.
        names: the names of nodes with a value.
        restored: the nodes whose values were restored.
        mismatched: the nodes that match objects which can't take their values.
    """

    def __init__(self, folder: Folder, root: Any, alias: Any, skipped: Iterable[str]) -> None:
        self.folder = folder
        self.saved: list[SavedNode] = from_json(folder)
        self.flat = is_flat(folder)
        ignored = {self.saved[0].children[name] for name in skipped if name in self.saved[0].children}
        self.names = {number: name for number, name in names_of(self.saved).items() if number not in ignored}
        self.restored: set[int] = set()
        self.mismatched: set[int] = set()
        self._root, self._alias = root, alias
        self._parents = parents_in(self.saved)
        self._ancestors: set[int] = set()
        self._restored_objects: dict[int, tuple[Any, int | _Unrestored]] = {}
        self._deferred_roots: list[tuple[Callable[[], Any], int]] = [(weakref.ref(root), 0)]
        self._is_restoring = False

    @property
    def unrestored(self) -> set[int]:
        """The nodes whose values have not been restored."""
        return self.names.keys() - self.restored

    def begin(self) -> None:
        """Restore the existing objects, and defer the others.

        Raises:
            InvalidArgumentError: a variable has another shape or dtype than its value; nothing has changed.
            DataLossError: an array is damaged; nothing has changed.
        """
        graph = live_graph(self._root, self._alias)
        reject_graph_variables(graph)
        with initial_values.restoring.lock, dispatch.using(EAGER):
            if self.flat:
                variables = [n.obj for n in graph if isinstance(n.obj, Variable)]
                matches = match_by_name(self.saved, variables)
            else:
                matches = match(self.saved, [(self._root, 0)], range(len(self.saved)), self._node_of)
            self._restore(self._new_values(matches), "nothing has changed")
            self._update_deferred(matches)
            self._root = self._alias = None  # the restoration doesn't keep objects alive
            for other in _deferred[:]:  # a copy: finished ones are removed
                other.drop_superseded(matches)
            if self.unrestored and not self.flat:
                _deferred.insert(0, self)
                initial_values.restorations.insert(0, self.advance)
            else:
                self.folder.close()

    def advance(self) -> None:
        """Restore the objects that have been created since the last call.

        Raises:
            InvalidArgumentError, DataLossError: a value does not fit its variable, or is damaged; all others
                are restored.
        """
        with initial_values.restoring.lock, dispatch.using(EAGER):
            if not self._is_restoring:  # not reentrant: setting an object's state may read a variable
                self._is_restoring = True
                try:
                    self._advance()
                finally:
                    self._is_restoring = False

    def _advance(self) -> None:
        alive = [(ref(), number) for ref, number in self._deferred_roots]
        roots = [(obj, number) for obj, number in alive if obj is not None]
        matches = match(self.saved, roots, self.unrestored | self._ancestors, self._node_of)
        first_error = None
        for obj, number in self._new_values(matches):
            try:
                self._restore([(obj, number)], "the variable keeps its initial value")
            except Exception as error:
                self._restored_objects[id(obj)] = (_reference(obj), _Unrestored.MISFIT)
                first_error = first_error or error
        self._update_deferred(matches)
        if first_error is not None:
            raise first_error

    def end(self) -> None:
        """Stop the restoration, and close the checkpoint."""
        if self in _deferred:
            _deferred.remove(self)
            initial_values.restorations.remove(self.advance)
            self.folder.close()

    def drop_superseded(self, newer: Matches) -> None:
        """Stop restoring below objects that a newer checkpoint has restored."""
        superseded = {id(obj) for obj, _ in newer.nodes}
        self._deferred_roots = [
            (ref, number) for ref, number in self._deferred_roots if id(ref()) not in superseded
        ]
        if not self._deferred_roots:
            self.end()

    def _restore(self, values: list[tuple[Any, int]], outcome: str) -> None:
        """Restore objects: all of them, or none after an error, whose message has ``outcome``."""
        reasons = [
            mismatch_reason(self.folder, self.saved[number].key or "", obj)
            for obj, number in values
            if isinstance(obj, Variable)
        ]
        raise_for_mismatches(self.folder, [text for text in reasons if text is not None], outcome)
        _restore_values(self.saved, self.folder, values)
        for obj, number in values:
            self._restored_objects[id(obj)] = (_reference(obj), number)
            for older in _deferred[_deferred.index(self) + 1 :] if self in _deferred else _deferred:
                older._restored_objects[id(obj)] = (_reference(obj), _Unrestored.SUPERSEDED)
        self.restored |= {number for _, number in values}

    def _update_deferred(self, matches: Matches) -> None:
        """Update the mismatched nodes, and the deferred roots above unrestored values.

        Lists can't be referenced weakly: they are reached from the objects that hold them. Children of the
        checkpoint itself are roots, since it may be deleted.
        """
        self.mismatched = self._mismatched_nodes(matches)
        self._ancestors = ancestors_of(self.unrestored, self._parents)
        root_children = set(self.saved[0].children.values())
        self._deferred_roots = [
            (_reference(obj), number)
            for obj, number in matches.nodes
            if number in self._ancestors and (number in root_children or _supports_weak_references(obj))
        ]
        if not self._deferred_roots:
            self.end()

    def _mismatched_nodes(self, matches: Matches) -> set[int]:
        """The nodes with a value whose objects can't take it, or have taken another node's value."""
        conflicting = {n for obj, n in matches.values.values() if self._restored_node(obj) not in (None, n)}
        return ((matches.mismatched | conflicting) - self.restored) & self.names.keys()

    def _new_values(self, matches: Matches) -> list[tuple[Any, int]]:
        """The matches whose objects this checkpoint has not restored yet: each object is restored once."""
        return [
            (obj, number)
            for obj, number in matches.values.values()
            if number in self.names and self._restored_node(obj) is None
        ]

    def has_restored(self, obj: Any) -> bool:
        """Whether an object was restored from this checkpoint or a newer one."""
        return self._restored_node(obj) not in (None, _Unrestored.MISFIT)

    def _node_of(self, variable: Variable) -> int | None:
        """The node from which a variable was restored."""
        number = self._restored_node(variable)
        return number if isinstance(number, int) else None

    def _restored_node(self, obj: Any) -> int | _Unrestored | None:
        """The node from which an object was restored, or the reason why it wasn't; None before an attempt."""
        reference, number = self._restored_objects.get(id(obj), (None, 0))
        return number if reference is not None and reference() is obj else None


def _supports_weak_references(obj: Any) -> bool:
    return hasattr(obj, "__weakref__")


def _reference(obj: Any) -> Callable[[], Any]:
    """A weak reference to ``obj``; a strong one if it doesn't support weak ones."""
    return weakref.ref(obj) if _supports_weak_references(obj) else lambda: obj


def _restore_values(saved: list[SavedNode], folder: Folder, values: list[tuple[Any, int]]) -> None:
    """Set each object's value: of all of them, or of none after an error."""
    stateful = [(obj, saved[n].state) for obj, n in values if not isinstance(obj, Variable)]
    earlier = [(obj, state_of(obj)) for obj, _ in stateful]
    try:
        for obj, state in stateful:
            assert state is not None, "an object with a state matches nodes with a state only"
            set_state(obj, state[0])
        assign_arrays(folder, [(v, saved[n].key or "") for v, n in values if isinstance(v, Variable)])
    except BaseException:
        for obj, before in earlier:
            set_state(obj, before)
        raise


_deferred: Final[list[Restoration]] = []
"""The restorations with remaining values, the newest first."""


def restore_deferred() -> None:
    """Restore the objects that have been created since the last call, from all deferred restorations."""
    for restoration in _deferred[:]:  # a copy: finished ones are removed
        restoration.advance()
