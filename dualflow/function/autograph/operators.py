"""The operators that converted code calls as ``ag__``; their modules are imported at the first use."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.locks import imported

_PACKAGE: Final = __name__.rpartition(".")[0]
_MODULES: Final = {
    "python_values": ("if_stmt", "for_stmt", "if_exp", "and_", "or_", "not_", "returned", "parts", "items"),
    "loops": ("while_stmt",),
    "raise_statements": ("raised", "catching", "kinds", "caused"),
    "unpacking": ("contains", "is_sequence"),
    "assigned_variables": ("UNRETURNED", "ObjectAttribute", "ContainerItem"),
    "compilation": ("callee", "scoped_callee"),
    "array_writes": ("augmented_item", "with_item"),
}
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names}


class AutographOperators:
    """The namespace ``ag__`` of converted code: AutoGraph's operators, imported at their first use."""

    AssertionError = AssertionError
    BaseException = BaseException
    slice = slice

    def __getattr__(self, name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"converted code has no operator {name!r}", name=name, obj=self)
        operator = getattr(imported(f"{_PACKAGE}.{_MODULE_OF[name]}"), name)
        setattr(self, name, operator)
        return operator


OPERATORS: Final = AutographOperators()
