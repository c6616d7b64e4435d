"""Restoration of objects from a checkpoint: of existing objects at once, deferred for others.

While values remain, the restoration is one of ``eager.initial_values.restorations``: before a variable that
is created meanwhile is first read, deferred restorations look for it. They search below *deferred roots*:
objects that have matched a node with unrestored values below it. A restoration doesn't keep them alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.eager import initial_values
from dualflow.eager.engine import EAGER
from dualflow.eager.variable import Variable
from dualflow.train.fitting import assign_arrays, misfit, refuse
from dualflow.train.folder import Folder
from dualflow.train.matching import Matches, match, match_by_name, parents_in
from dualflow.train.object_graph import live_graph, refuse_graph_variables
from dualflow.train.reachability import ancestors_of
from dualflow.train.saved_graph import SavedNode, from_json, is_flat, names_of
from dualflow.train.trackable import set_state, state_of

_REFUSED, _ELSEWHERE = -1, -2
"""Instead of a node: a value that didn't fit the object, and a value of a newer checkpoint."""


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
        ignored = {self.saved[0].children.get(name, -1) for name in skipped}
        self.names = {number: name for number, name in names_of(self.saved).items() if number not in ignored}
        self.restored: set[int] = set()
        self.mismatched: set[int] = set()
        self._root, self._alias = root, alias
        self._parents = parents_in(self.saved)
        self._above: set[int] = set()
        self._restored_objects: dict[int, tuple[Any, int]] = {}
        self._deferred_roots: list[tuple[Callable[[], Any], int]] = [(weakref.ref(root), 0)]
        self._busy = False

    @property
    def left(self) -> set[int]:
        """The nodes whose values have not been restored."""
        return self.names.keys() - self.restored

    def begin(self) -> None:
        """Restore the existing objects, and defer the others.

        Raises:
            InvalidArgumentError: a variable has another shape or dtype than its value; nothing has changed.
            DataLossError: an array is damaged; nothing has changed.
        """
        graph = live_graph(self._root, self._alias)
        refuse_graph_variables(graph)
        with initial_values.restoring.lock, dispatch.using(EAGER):
            if self.flat:
                variables = [n.thing for n in graph if isinstance(n.thing, Variable)]
                matches = match_by_name(self.saved, variables)
            else:
                matches = match(self.saved, [(self._root, 0)], range(len(self.saved)), self._node_of)
            self._restore(self._unrestored(matches), "nothing has changed")
            self._record(matches)
            self._root = self._alias = None  # the restoration doesn't keep objects alive
            for other in _deferred[:]:  # a copy: finished ones are removed
                other.give_up(matches)
            if self.left and not self.flat:
                _deferred.insert(0, self)
                initial_values.restorations.insert(0, self.advance)
            else:
                self.folder.close()

    def advance(self) -> None:
        """Restore objects that were created since.

        Raises:
            InvalidArgumentError, DataLossError: a value does not fit its variable, or is damaged; all others
                are restored.
        """
        with initial_values.restoring.lock, dispatch.using(EAGER):
            if not self._busy:  # not reentrant: setting an object's state may read a variable
                self._busy = True
                try:
                    self._advance()
                finally:
                    self._busy = False

    def _advance(self) -> None:
        alive = [(ref(), number) for ref, number in self._deferred_roots]
        roots = [(thing, number) for thing, number in alive if thing is not None]
        matches = match(self.saved, roots, self.left | self._above, self._node_of)
        first_error = None
        for thing, number in self._unrestored(matches):
            try:
                self._restore([(thing, number)], "the variable keeps its initial value")
            except Exception as error:
                self._restored_objects[id(thing)] = (_reference(thing), _REFUSED)
                first_error = first_error or error
        self._record(matches)
        if first_error is not None:
            raise first_error

    def end(self) -> None:
        """Drop the remaining values."""
        if self in _deferred:
            _deferred.remove(self)
            initial_values.restorations.remove(self.advance)
            self.folder.close()

    def give_up(self, newer: Matches) -> None:
        """Drop values below objects that a newer checkpoint has restored."""
        taken = {id(thing) for thing, _ in newer.nodes}
        self._deferred_roots = [
            (ref, number) for ref, number in self._deferred_roots if id(ref()) not in taken
        ]
        if not self._deferred_roots:
            self.end()

    def _restore(self, values: list[tuple[Any, int]], otherwise: str) -> None:
        """Restore objects: all of them or none."""
        misfits = [
            misfit(self.folder, self.saved[number].key or "", thing)
            for thing, number in values
            if isinstance(thing, Variable)
        ]
        refuse(self.folder, [text for text in misfits if text is not None], otherwise)
        _restore_values(self.saved, self.folder, values)
        for thing, number in values:
            self._restored_objects[id(thing)] = (_reference(thing), number)
            for older in _deferred[_deferred.index(self) + 1 :] if self in _deferred else _deferred:
                older._restored_objects[id(thing)] = (_reference(thing), _ELSEWHERE)
        self.restored |= {number for _, number in values}

    def _record(self, matches: Matches) -> None:
        """Record the remaining values, and the deferred roots above them.

        Lists can't be referenced weakly: they are reached from the objects that hold them. Children of the
        checkpoint itself are roots, since it may be deleted.
        """
        taken = {n for thing, n in matches.values.values() if self._restored_node(thing) not in (None, n)}
        self.mismatched = ((matches.mismatched | taken) - self.restored) & self.names.keys()
        self._above = ancestors_of(self.left, self._parents)
        own = set(self.saved[0].children.values())
        self._deferred_roots = [
            (_reference(thing), number)
            for thing, number in matches.nodes
            if number in self._above and (number in own or _is_weak(thing))
        ]
        if not self._deferred_roots:
            self.end()

    def _unrestored(self, matches: Matches) -> list[tuple[Any, int]]:
        """Matches whose objects have not been restored before; others may have changed their value since."""
        return [
            (thing, number)
            for thing, number in matches.values.values()
            if number in self.names and self._restored_node(thing) is None
        ]

    def has_restored(self, thing: Any) -> bool:
        """Whether an object was restored from this checkpoint or a newer one."""
        return self._restored_node(thing) not in (None, _REFUSED)

    def _node_of(self, variable: Variable) -> int | None:
        """The node from which a variable was restored."""
        number = self._restored_node(variable)
        return number if number is not None and number >= 0 else None

    def _restored_node(self, thing: Any) -> int | None:
        """The node from which an object was restored, or the reason why it wasn't; None for other objects."""
        reference, number = self._restored_objects.get(id(thing), (None, 0))
        return number if reference is not None and reference() is thing else None


def _is_weak(thing: Any) -> bool:
    return hasattr(thing, "__weakref__")


def _reference(thing: Any) -> Callable[[], Any]:
    """A weak reference to ``thing``; a strong one if it doesn't support weak ones."""
    return weakref.ref(thing) if _is_weak(thing) else lambda: thing


def _restore_values(saved: list[SavedNode], folder: Folder, values: list[tuple[Any, int]]) -> None:
    """Set each object's value: of all of them, or of none after an error."""
    stateful = [(thing, saved[n].state) for thing, n in values if not isinstance(thing, Variable)]
    earlier = [(thing, state_of(thing)) for thing, _ in stateful]
    try:
        for thing, state in stateful:
            assert state is not None, "an object with a state matches nodes with a state only"
            set_state(thing, state[0])
        assign_arrays(folder, [(v, saved[n].key or "") for v, n in values if isinstance(v, Variable)])
    except BaseException:
        for thing, before in earlier:
            set_state(thing, before)
        raise


_deferred: Final[list[Restoration]] = []
"""The restorations with remaining values, the newest first."""


def restore_deferred() -> None:
    """Restore objects that were created since, from all deferred restorations."""
    for restoration in _deferred[:]:  # a copy: finished ones are removed
        restoration.advance()
