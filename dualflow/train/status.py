"""What became of a restore: which values were taken, which wait for objects, which nobody can take."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.errors import NotRestoredError
from dualflow.core.tracebacks import entry
from dualflow.eager.variable import Variable
from dualflow.train.object_graph import live_graph
from dualflow.train.restoration import Restoration, look_again
from dualflow.train.trackable import has_state

_SHOWN: Final = 10


@entry
class CheckpointLoadStatus:
    """What :meth:`Checkpoint.restore` and :meth:`Checkpoint.read` return; printing it shows the lists.

    Values are called by their paths from the checkpoint's root: ``net/layers/0``. The lists are those of the
    moment in which they are asked for: objects that are created later take the values that wait for them.
    """

    def __init__(
        self, restoration: Restoration | None, root: Any, alias: Any, skipped: tuple[str, ...]
    ) -> None:
        self._restoration = restoration
        self._root, self._alias, self._skipped = root, alias, skipped

    @property
    def restored(self) -> list[str]:
        """The values that objects have taken."""
        return self._named(self._now().restored) if self._restoration is not None else []

    @property
    def pending(self) -> list[str]:
        """The values of the checkpoint that wait for objects yet to come."""
        if self._restoration is None or self._restoration.flat:
            return []
        found = self._now()
        return self._named(found.left - found.refused)

    @property
    def unused(self) -> list[str]:
        """The values of the checkpoint that nobody can take: something else stands in their place."""
        if self._restoration is None:
            return []
        found = self._now()
        return self._named(found.left if found.flat else found.refused)

    @property
    def missing(self) -> list[str]:
        """The variables, and other objects with a state, that the checkpoint has no value for."""
        self._now()
        return self._missing()

    def _missing(self) -> list[str]:
        nodes = live_graph(self._root, self._alias)
        return [
            node.name
            for node in nodes
            if (isinstance(node.thing, Variable) or has_state(node.thing))
            and node.name not in self._skipped
            and not (self._restoration is not None and self._restoration.gave(node.thing))
        ]

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Check that every value was taken and every object has one, and return the status.

        Raises:
            NotRestoredError: a value is left, or an object without one.
        """
        self._require_checkpoint()
        self._require(self.pending, "values of the checkpoint wait for objects that are not there")
        self._require(self.unused, "values of the checkpoint have something else in their place")
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Check that every object that is there has got its value, and return the status.

        Raises:
            NotRestoredError: the checkpoint has no value for one.
        """
        self._require_checkpoint()
        self._require(self.missing, "objects have no value in the checkpoint")
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Check that anything was restored at all, and return the status.

        Raises:
            NotRestoredError: nothing was.
        """
        self._require_checkpoint()
        if not self.restored:
            raise NotRestoredError(f"Nothing of the checkpoint was restored.\n{self}")
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Return the status: values may be left without a word here."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing: values are restored at once. For programs from the time of sessions."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Nothing: values are restored at once. For programs from the time of sessions."""

    def __repr__(self) -> str:
        if self._restoration is None:
            return "<CheckpointLoadStatus: no checkpoint was given>"
        found = self._restoration
        unused = found.left if found.flat else found.refused
        lists = {
            "restored": self._named(found.restored),
            "pending": self._named(found.left - unused),
            "unused": self._named(unused),
            "not in the checkpoint": self._missing(),
        }
        lines = [f"  {name}: {_shown(names)}" for name, names in lists.items() if names]
        return "\n".join([f"<CheckpointLoadStatus of {self._restoration.folder.path}", *lines]) + ">"

    def _now(self) -> Any:
        look_again()
        return self._restoration

    def _named(self, numbers: Any) -> list[str]:
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
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
