"""The variables that a branch or a loop assigns: saved, restored and merged while it is traced.

They are local variables of the user's function, in cells that the generated bodies share, and globals,
attributes of objects and items of containers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any, Final

from dualflow.core.records import dataclass


class Unassigned:
    """The placeholder for the value of an unassigned variable."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "unassigned"


class Unreturned(Unassigned):
    """The placeholder for the result of a function that has not returned yet."""

    __slots__ = ()


UNASSIGNED: Final = Unassigned()
UNRETURNED: Final = Unreturned()


class Assignable(ABC):
    """The target of an assignment."""

    name: str

    @abstractmethod
    def read(self) -> Any:
        """The value; ``UNASSIGNED`` if there is none."""

    @abstractmethod
    def write(self, x: Any) -> None:
        """Assign ``x``, or delete it for ``UNASSIGNED``."""


@dataclass(frozen=True, slots=True)
class LocalVariable(Assignable):
    """A local variable of a function."""

    name: str
    cell: CellType

    def read(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return UNASSIGNED

    def write(self, x: Any) -> None:
        if x is not UNASSIGNED:
            self.cell.cell_contents = x
        elif self.read() is not UNASSIGNED:
            del self.cell.cell_contents


@dataclass(frozen=True, slots=True)
class ContainerItem(Assignable):
    """An item of a container: ``container_and_key`` returns the container and the key."""

    name: str
    container_and_key: Callable[[], tuple[Any, Any]]

    def read(self) -> Any:
        try:
            container, key = self.container_and_key()
            return container[key]
        except (LookupError, AttributeError, NameError):
            return UNASSIGNED

    def write(self, x: Any) -> None:
        if x is UNASSIGNED and self.read() is UNASSIGNED:
            return
        container, key = self.container_and_key()
        if x is UNASSIGNED:
            del container[key]
        else:
            container[key] = x


@dataclass(frozen=True, slots=True)
class ObjectAttribute(Assignable):
    """An attribute of an object: ``owner`` returns the object."""

    name: str
    owner: Callable[[], Any]
    attribute: str

    def read(self) -> Any:
        try:
            return getattr(self.owner(), self.attribute)
        except (LookupError, AttributeError, NameError):
            return UNASSIGNED

    def write(self, x: Any) -> None:
        if x is UNASSIGNED and self.read() is UNASSIGNED:
            return
        if x is UNASSIGNED:
            delattr(self.owner(), self.attribute)
        else:
            setattr(self.owner(), self.attribute, x)


AssignedNames = Sequence["str | Assignable"]


class SavedVariables:
    """The variables that the bodies of one statement assign.

    Args:
        bodies: generated functions; each variable is a free variable or a global of them.
        names: the variables that are read afterwards.
        temporaries: the other variables, which are reset to their values at construction.
    """

    __slots__ = ("_references", "_temporaries", "names")

    def __init__(
        self, bodies: Sequence[Callable[..., Any] | None], names: AssignedNames, temporaries: Sequence[str]
    ) -> None:
        functions = [body for body in bodies if isinstance(body, FunctionType)]
        cells: dict[str, CellType] = {}
        for body in functions:
            cells.update(zip(body.__code__.co_freevars, body.__closure__ or (), strict=True))
        module = functions[0].__globals__
        self._references = [_reference(name, cells, module) for name in names]
        others = [_reference(name, cells, module) for name in temporaries]
        self._temporaries = [(reference, reference.read()) for reference in others]
        self.names = [reference.name for reference in self._references]

    def read(self) -> tuple[Any, ...]:
        """The values of ``names``."""
        return tuple([reference.read() for reference in self._references])

    def write(self, values: Sequence[Any]) -> None:
        """Assign values to ``names``, and reset the temporaries."""
        for reference, x in zip(self._references, values, strict=True):
            reference.write(x)
        for reference, x in self._temporaries:
            reference.write(x)


def _reference(name: str | Assignable, cells: dict[str, CellType], module: dict[str, Any]) -> Assignable:
    if isinstance(name, Assignable):
        return name
    return LocalVariable(name, cells[name]) if name in cells else ContainerItem(name, lambda: (module, name))
