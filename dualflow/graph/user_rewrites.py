"""User-defined rewrites, which a compile applies in addition to its own passes.

A rewrite is part of :class:`dualflow.graph.options.CompileOptions`, and so of the key of a program. The
registry belongs to the process. A change of it discards all fast paths, so that the next call of each
function looks its program up again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, Protocol
from weakref import WeakSet

from dualflow.core.errors import InternalError, InvalidArgumentError
from dualflow.core.locks import SharedLock
from dualflow.core.records import NamedTuple, dataclass
from dualflow.core.tracebacks import entry
from dualflow.graph.ir import Graph, Node, Origin
from dualflow.graph.size_guards import verify_with_bodies

VARIABLE: Final = "DUALFLOW_DISABLE_REWRITES"
"""The environment variable with the names of rewrites that are off, or ``all``."""


class Match(NamedTuple):
    """A place at which a rewrite has changed a graph.

    Attributes:
        rewrite: the name of the rewrite.
        origin: the user's line of the node that was replaced; None for a pass, or without a line.
    """

    rewrite: str
    origin: Origin | None


Report = Callable[[Match], None]


def descriptions(rewrites: Iterable[Rewrite], matches: Sequence[Match]) -> list[str]:
    """A line for each rewrite: its description, and the lines of the user at which it has matched."""
    lines = []
    for rewrite in rewrites:
        origins = [match.origin for match in matches if match.rewrite == rewrite.name]
        user_lines = [f"{os.path.basename(o.file)}:{o.line}" for o in origins if o is not None]
        where = f" at {', '.join(dict.fromkeys(user_lines))}" if user_lines else ""
        what = f"rewritten by {rewrite.name}" if origins else f"{rewrite.name} has matched nothing"
        algebra = rewrite.algebra.partition("\n")[0]
        lines.append(f"{what} ({algebra}){where}")
    return lines


@dataclass(frozen=True, slots=True, eq=False)
class Rewrite:
    """A rule or a pass of a user; :mod:`dualflow.rewrite` creates it. Compared by identity.

    Attributes:
        name: its name in reports, and that by which it is disabled.
        algebra: the docstring: what it replaces by what.
        origin: where it is defined.
        function: ``function(graph, report)`` returns the graph after it, and reports each change.
        in_bodies: whether it runs on the bodies of branches and loops, too.
        importable: the module and the qualified name of the user's function, for pickle.
    """

    name: str
    algebra: str
    origin: Origin
    function: Callable[[Graph, Report], Graph]
    in_bodies: bool
    importable: tuple[str, str]

    def __call__(self, graph: Graph, report: Report) -> Graph:
        """``graph`` after the rewrite.

        Raises:
            InvalidArgumentError: the rewrite has changed an interface of the graph, the order of its effects,
                or has broken a rule of the IR.
        """
        changed = self.function(graph, report)
        if changed is not graph:
            self._check(graph, changed)
        return changed

    def _check(self, before: Graph, after: Graph) -> None:
        if not isinstance(after, Graph):
            raise self.error(f"has returned {type(after).__name__}, not a graph", None)
        if after.inputs != before.inputs or after.captures != before.captures:
            raise self.error("has changed the inputs of the graph", None)
        for old, new in zip(before.results, after.results, strict=False):
            if old.spec != new.spec:
                node = old.node
                raise self.error(
                    f"has replaced {old.spec} by {new.spec}", None if node is None else node.origin
                )
        if [len(g.outputs) for g in (before, after)].count(len(before.outputs)) < 2 or [
            u.input for u in before.updates
        ] != [u.input for u in after.updates]:
            raise self.error("has changed the number of results", None)
        try:
            verify_with_bodies(after)
        except InternalError as error:
            raise self.error(f"has broken the graph: {error}", None) from None
        self._check_effects(before, after)

    def _check_effects(self, before: Graph, after: Graph) -> None:
        old, new = list(_effects(before)), list(_effects(after))
        if [node.op for node in old] == [node.op for node in new]:
            return
        differs = (a for a, b in zip(old, new, strict=False) if a.op is not b.op)
        node = next(differs, old[len(new)] if len(new) < len(old) else new[len(old)])
        raise self.error(f"has removed, added or moved an effect, that of {node.op.name}", node.origin)

    def error(self, what: str, origin: Origin | None) -> InvalidArgumentError:
        """The error with the text "the rewrite NAME ``what``", and with the user's line ``origin``."""
        lines = [f"The rewrite {self.name!r} {what}.", f"  defined at {self.origin}"]
        if origin is not None:
            lines.append(f"  applied to {origin}")
        return InvalidArgumentError("\n".join(lines))

    @entry
    def __reduce__(self) -> tuple[Any, ...]:
        """The name under which a module has it: its function can't be pickled."""
        return _imported, self.importable

    def __repr__(self) -> str:
        return f"<rewrite {self.name}: {self.algebra}>"


@entry
def _imported(module: str, name: str) -> Any:
    return attrgetter(name)(import_module(module))


def _effects(graph: Graph) -> Iterator[Node]:
    """The nodes with an effect in program order; those of bodies after the node that they belong to."""
    pending = [graph]
    while pending:
        current = pending.pop()
        for node in current.nodes:
            if node.effect is not None:
                yield node
                pending += [body for _, body in node.bodies]


class HoldsFastPaths(Protocol):
    """An object that calls machine code without looking up its program."""

    def forget_fast_paths(self) -> None:
        """Discard what was looked up."""
        ...


class Registry:
    """The registered rewrites, and the names of those that are disabled.

    Attributes:
        generation: the number of changes so far.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._shared = SharedLock()
        self._registered: dict[str, Rewrite] = {}
        self._disabled: Counter[str] = Counter()
        self._names: set[str] = set()
        self._watchers: WeakSet[Any] = WeakSet()

    def declare(self, rewrite: Rewrite) -> None:
        """Store the name of a new rewrite, registered or not, so that it can be disabled."""
        with self._shared.lock:
            self._names.add(rewrite.name)

    def add(self, rewrite: Rewrite) -> None:
        """Register ``rewrite``, as the last one.

        Raises:
            InvalidArgumentError: another one has its name.
        """
        with self._shared.lock:
            if self._registered.get(rewrite.name, rewrite) is not rewrite:
                raise InvalidArgumentError(
                    f"A rewrite {rewrite.name!r} is registered already, defined at "
                    f"{self._registered[rewrite.name].origin}. Unregister it, or choose another name."
                )
            self._registered[rewrite.name] = rewrite
            self._changed()

    def remove(self, name: str) -> None:
        """Unregister the rewrite of this name.

        Raises:
            InvalidArgumentError: there is none.
        """
        with self._shared.lock:
            if name not in self._registered:
                raise InvalidArgumentError(
                    f"No rewrite {name!r} is registered, only {sorted(self._registered) or 'none'}."
                )
            del self._registered[name]
            self._changed()

    def turn_off(self, names: Iterable[str]) -> None:
        """Disable rewrites until :meth:`turn_on`, as often as this was called.

        Raises:
            InvalidArgumentError: there is no rewrite of this name.
        """
        names = tuple(names)
        with self._shared.lock:
            for name in names:
                if name not in self._names:
                    raise InvalidArgumentError(
                        f"There is no rewrite {name!r} to disable; there are {sorted(self._names) or 'none'}."
                    )
            self._disabled.update(names)
            self._changed()

    def turn_on(self, names: Iterable[str]) -> None:
        """Undo one call of :meth:`turn_off`.

        Raises:
            InvalidArgumentError: a name is not disabled.
        """
        names = tuple(names)
        with self._shared.lock:
            for name in names:
                if not self._disabled[name]:
                    raise InvalidArgumentError(f"The rewrite {name!r} is not disabled.")
            self._disabled.subtract(names)
            self._changed()

    @contextmanager
    def off(self, *names: str) -> Iterator[None]:
        """A context in which rewrites are disabled, in all threads."""
        self.turn_off(names)
        try:
            yield
        finally:
            self.turn_on(names)

    @property
    def registered(self) -> tuple[Rewrite, ...]:
        """The registered rewrites in the order in which they run, the disabled ones included."""
        with self._shared.lock:
            return tuple(self._registered.values())

    def is_disabled(self, name: str) -> bool:
        """Whether rewrites of this name are off."""
        named = [part.strip() for part in os.environ.get(VARIABLE, "").split(",")]
        return self._disabled[name] > 0 or name in named or "all" in named

    def active(self, own: Sequence[Rewrite] = ()) -> tuple[Rewrite, ...]:
        """The rewrites of a function with ``own`` rewrites: the registered ones first.

        An own rewrite replaces a registered one of its name.
        """
        if not self._registered and not own:
            return ()
        with self._shared.lock:
            by_name = {**self._registered, **{rewrite.name: rewrite for rewrite in own}}
        return tuple([rewrite for name, rewrite in by_name.items() if not self.is_disabled(name)])

    def watch(self, holder: HoldsFastPaths, generation: int) -> None:
        """Discard the fast paths of ``holder`` at each change after ``generation``, as long as it lives.

        The generation is read before a program is looked up, and this is called after its fast path is
        stored: a change in between is seen here.
        """
        with self._shared.lock:
            self._watchers.add(holder)
            if self.generation != generation:
                holder.forget_fast_paths()

    def _changed(self) -> None:
        self.generation += 1
        for holder in list(self._watchers):
            holder.forget_fast_paths()


REWRITES: Final = Registry()
