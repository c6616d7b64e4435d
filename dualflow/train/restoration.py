"""A checkpoint that objects take their values from: those that are there at once, others as they come.

While values are left, the restoration is one of ``eager.initial_values.restorations``: a variable that is
created meanwhile asks, before it is first read, whether it stands where the checkpoint has a value. What the
objects are is found from *anchors*: objects below which values are left, which it does not keep alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.eager import initial_values
from dualflow.eager.engine import EAGER
from dualflow.eager.variable import Variable
from dualflow.train.fitting import give, misfit, refuse
from dualflow.train.folder import Folder
from dualflow.train.matching import Matches, match, match_by_name, parents_in
from dualflow.train.object_graph import live_graph, refuse_graph_variables
from dualflow.train.reachability import ancestors_of
from dualflow.train.saved_graph import SavedNode, from_json, is_flat, names_of
from dualflow.train.trackable import set_state, state_of

_REFUSED, _ELSEWHERE = -1, -2
"""In the place of a node: a value that an object could not take, and one of a newer checkpoint."""


class Restoration:
    """The values of one checkpoint on their way into objects.

    Args:
        folder: the checkpoint.
        root: the object that stands where the checkpoint's root does.
        alias: an object that is the same node as the root.
        skipped: names of the root's children that are no concern of this restoration.

    Attributes:
        saved: the nodes of the checkpoint.
        names: the names of those that hold something.
        restored: the nodes whose values were taken.
        refused: the nodes whose place holds something else.
    """

    def __init__(self, folder: Folder, root: Any, alias: Any, skipped: Iterable[str]) -> None:
        self.folder = folder
        self.saved: list[SavedNode] = from_json(folder)
        self.flat = is_flat(folder)
        ignored = {self.saved[0].children.get(name, -1) for name in skipped}
        self.names = {number: name for number, name in names_of(self.saved).items() if number not in ignored}
        self.restored: set[int] = set()
        self.refused: set[int] = set()
        self._root, self._alias = root, alias
        self._parents = parents_in(self.saved)
        self._above: set[int] = set()
        self._given: dict[int, tuple[Any, int]] = {}
        self._anchors: list[tuple[Callable[[], Any], int]] = [(weakref.ref(root), 0)]
        self._busy = False

    @property
    def left(self) -> set[int]:
        """The nodes that hold something which nobody has taken."""
        return self.names.keys() - self.restored

    def begin(self) -> None:
        """Give the objects that are there their values, and wait for the others.

        Raises:
            InvalidArgumentError: a variable has another shape or dtype than its value; nothing has changed.
            DataLossError: an array is damaged; nothing has changed.
        """
        graph = live_graph(self._root, self._alias)
        refuse_graph_variables(graph)
        with initial_values.restoring.lock, dispatch.using(EAGER):
            if self.flat:
                variables = [n.thing for n in graph if isinstance(n.thing, Variable)]
                found = match_by_name(self.saved, variables)
            else:
                found = match(self.saved, [(self._root, 0)], range(len(self.saved)), self._node_of)
            self._restore(self._fresh(found), "nothing has changed")
            self._note(found)
            self._root = self._alias = None  # only who uses the objects keeps them alive
            for other in _waiting[:]:  # who has nothing left goes
                other.give_up(found)
            if self.left and not self.flat:
                _waiting.insert(0, self)
                initial_values.restorations.insert(0, self.advance)
            else:
                self.folder.close()

    def advance(self) -> None:
        """Give objects that have come since their values.

        Raises:
            InvalidArgumentError, DataLossError: a value does not fit its variable, or is damaged; all others
                are restored.
        """
        with initial_values.restoring.lock, dispatch.using(EAGER):
            if not self._busy:  # a state that is set reads a variable
                self._busy = True
                try:
                    self._advance()
                finally:
                    self._busy = False

    def _advance(self) -> None:
        alive = [(ref(), number) for ref, number in self._anchors]
        anchors = [(thing, number) for thing, number in alive if thing is not None]
        found = match(self.saved, anchors, self.left | self._above, self._node_of)
        wrong = None
        for thing, number in self._fresh(found):
            try:
                self._restore([(thing, number)], "the variable keeps its first value")
            except Exception as error:
                self._given[id(thing)] = (_reference(thing), _REFUSED)
                wrong = wrong or error
        self._note(found)
        if wrong is not None:
            raise wrong

    def end(self) -> None:
        """Wait no longer."""
        if self in _waiting:
            _waiting.remove(self)
            initial_values.restorations.remove(self.advance)
            self.folder.close()

    def give_up(self, newer: Matches) -> None:
        """Wait no longer for what stands below objects that a newer checkpoint was restored into."""
        taken = {id(thing) for thing, _ in newer.nodes}
        self._anchors = [(ref, number) for ref, number in self._anchors if id(ref()) not in taken]
        if not self._anchors:
            self.end()

    def _restore(self, values: list[tuple[Any, int]], otherwise: str) -> None:
        """Give objects their values: all of them or none."""
        misfits = [
            misfit(self.folder, self.saved[number].key or "", thing)
            for thing, number in values
            if isinstance(thing, Variable)
        ]
        refuse(self.folder, [text for text in misfits if text is not None], otherwise)
        _give(self.saved, self.folder, values)
        for thing, number in values:
            self._given[id(thing)] = (_reference(thing), number)
            for older in _waiting[_waiting.index(self) + 1 :] if self in _waiting else _waiting:
                older._given[id(thing)] = (_reference(thing), _ELSEWHERE)
        self.restored |= {number for _, number in values}

    def _note(self, found: Matches) -> None:
        """Remember what is left, and the objects below which it is.

        Lists can't be referred to weakly: they are found from the objects that hold them. The checkpoint's
        own are kept, since it may be gone.
        """
        taken = {n for thing, n in found.values.values() if self._had(thing) not in (None, n)}
        self.refused = ((found.refused | taken) - self.restored) & self.names.keys()
        self._above = ancestors_of(self.left, self._parents)
        own = set(self.saved[0].children.values())
        self._anchors = [
            (_reference(thing), number)
            for thing, number in found.nodes
            if number in self._above and (number in own or _is_weak(thing))
        ]
        if not self._anchors:
            self.end()

    def _fresh(self, found: Matches) -> list[tuple[Any, int]]:
        """The objects that take a value and have not had it: they may have changed it since."""
        return [
            (thing, number)
            for thing, number in found.values.values()
            if number in self.names and self._had(thing) is None
        ]

    def gave(self, thing: Any) -> bool:
        """Whether an object has had its value, of this checkpoint or of a newer one."""
        return self._had(thing) not in (None, _REFUSED)

    def _node_of(self, variable: Variable) -> int | None:
        """The node whose value a variable has had."""
        number = self._had(variable)
        return number if number is not None and number >= 0 else None

    def _had(self, thing: Any) -> int | None:
        """The node whose value an object has had, or what became of that; None if nothing did."""
        reference, number = self._given.get(id(thing), (None, 0))
        return number if reference is not None and reference() is thing else None


def _is_weak(thing: Any) -> bool:
    return hasattr(thing, "__weakref__")


def _reference(thing: Any) -> Callable[[], Any]:
    """A weak reference; to what can't be referred to so, the thing itself."""
    return weakref.ref(thing) if _is_weak(thing) else lambda: thing


def _give(saved: list[SavedNode], folder: Folder, values: list[tuple[Any, int]]) -> None:
    """Give each object its value: all of them, or none if anything is wrong."""
    stateful = [(thing, saved[n].state) for thing, n in values if not isinstance(thing, Variable)]
    earlier = [(thing, state_of(thing)) for thing, _ in stateful]
    try:
        for thing, state in stateful:
            assert state is not None, "what has no state is matched with no node that has"
            set_state(thing, state[0])
        give(folder, [(v, saved[n].key or "") for v, n in values if isinstance(v, Variable)])
    except BaseException:
        for thing, before in earlier:
            set_state(thing, before)
        raise


_waiting: Final[list[Restoration]] = []
"""The restorations that have values left, the newest first."""


def look_again() -> None:
    """Let all restorations that wait give their values to objects that have come since."""
    for restoration in _waiting[:]:  # who has nothing left goes
        restoration.advance()
