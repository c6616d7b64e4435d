"""The status of a restoration: which values are restored, deferred or unused."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.errors import NotRestoredError
from dualflow.core.tracebacks import entry
from dualflow.eager.variable import Variable
from dualflow.train.object_graph import live_graph
from dualflow.train.restoration import Restoration, restore_deferred
from dualflow.train.trackable import has_state

_SHOWN: Final = 10


@entry
class CheckpointLoadStatus:
    """The status that :meth:`Checkpoint.restore` and :meth:`Checkpoint.read` return; prints as its lists.

    Values are named by their paths from the checkpoint's root: ``net/layers/0``. The lists are computed when
    they are read: objects that are created later take deferred values.
    """

    def __init__(
        self, restoration: Restoration | None, root: Any, alias: Any, skipped: tuple[str, ...]
    ) -> None:
        self._restoration = restoration
        self._root, self._alias, self._skipped = root, alias, skipped

    @property
    def restored(self) -> list[str]:
        """The names of the values that are restored."""
        return self._names_of_nodes(self._updated().restored) if self._restoration is not None else []

    @property
    def pending(self) -> list[str]:
        """The names of deferred values: their objects don't exist yet."""
        if self._restoration is None or self._restoration.flat:
            return []
        restoration = self._updated()
        return self._names_of_nodes(restoration.unrestored - restoration.mismatched)

    @property
    def unused(self) -> list[str]:
        """The names of values that can't be restored: the objects at their paths can't take them."""
        if self._restoration is None:
            return []
        restoration = self._updated()
        return self._names_of_nodes(restoration.unrestored if restoration.flat else restoration.mismatched)

    @property
    def missing(self) -> list[str]:
        """The names of variables, and of other objects with a state, that the checkpoint has no value for."""
        self._updated()
        return self._missing()

    def _missing(self) -> list[str]:
        nodes = live_graph(self._root, self._alias)
        return [
            node.name
            for node in nodes
            if (isinstance(node.obj, Variable) or has_state(node.obj))
            and node.name not in self._skipped
            and not (self._restoration is not None and self._restoration.has_restored(node.obj))
        ]

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Check that every value and every object is restored, and return the status.

        Raises:
            NotRestoredError: a value or an object is not.
        """
        self._require_checkpoint()
        self._require(self.pending, "values of the checkpoint are deferred, since their objects don't exist")
        self._require(self.unused, "values of the checkpoint can't be taken by the objects at their paths")
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Check that every existing object is restored, and return the status.

        Raises:
            NotRestoredError: the checkpoint has no value for one.
        """
        self._require_checkpoint()
        self._require(self.missing, "objects have no value in the checkpoint")
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Check that at least one value is restored, and return the status.

        Raises:
            NotRestoredError: nothing is.
        """
        self._require_checkpoint()
        if not self.restored:
            raise NotRestoredError(f"Nothing of the checkpoint was restored.\n{self}")
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Return the status: there is no warning of unused values to silence."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Does nothing: values are restored at once. For TensorFlow 1 programs."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Does nothing: values are restored at once. For TensorFlow 1 programs."""

    def __repr__(self) -> str:
        if self._restoration is None:
            return "<CheckpointLoadStatus: no checkpoint was given>"
        restoration = self._restoration
        unused = restoration.unrestored if restoration.flat else restoration.mismatched
        lists = {
            "restored": self._names_of_nodes(restoration.restored),
            "pending": self._names_of_nodes(restoration.unrestored - unused),
            "unused": self._names_of_nodes(unused),
            "not in the checkpoint": self._missing(),
        }
        lines = [f"  {name}: {_shown(names)}" for name, names in lists.items() if names]
        return "\n".join([f"<CheckpointLoadStatus of {self._restoration.folder.path}", *lines]) + ">"

    def _updated(self) -> Any:
        restore_deferred()
        return self._restoration

    def _names_of_nodes(self, numbers: Any) -> list[str]:
        names = self._restoration.names if self._restoration is not None else {}
        return [names[number] for number in sorted(numbers)]

    def _require_checkpoint(self) -> None:
        if self._restoration is None:
            raise NotRestoredError("No checkpoint specified (save_path=None); nothing is being restored.")

    def _require(self, names: list[str], what: str) -> None:
        if names:
            raise NotRestoredError(
                f"{len(names)} {what}: {_shown(names)}. Names are paths from the checkpoint's root: give its "
                f"objects the same names as when it was saved, or leave the assertion out.\n{self}"
            )


def _shown(names: list[str]) -> str:
    omitted = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + omitted
