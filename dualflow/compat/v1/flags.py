"""Flags of the command line: ``v1.flags``, which are those of Abseil (``absl-py``)."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.errors import NotFoundError
from dualflow.core.locks import imported
from dualflow.core.namespace import ABSENT
from dualflow.core.namespace import publish as _publish

_NAMES: Final = (
    "DEFINE DEFINE_alias DEFINE_bool DEFINE_boolean DEFINE_enum DEFINE_float DEFINE_integer DEFINE_list "
    "DEFINE_multi_float DEFINE_multi_integer DEFINE_multi_string DEFINE_string FLAGS Flag FlagValues "
    "mark_flag_as_required mark_flags_as_required register_validator validator"
)


def absl_module(name: str) -> Any:
    """A module of Abseil.

    Raises:
        NotFoundError: it is not installed.
    """
    try:
        return imported(f"absl.{name}")
    except ModuleNotFoundError:
        raise NotFoundError(
            f"v1.{name} needs Abseil, which is not installed: pip install absl-py. Python's argparse does "
            "without it."
        ) from None


def _flag_function(name: str) -> Any:
    return getattr(absl_module("flags"), name, ABSENT)


_publish(
    globals(),
    internal=("ABSENT", "Any", "Final", "NotFoundError", "absl_module", "imported"),
    others=_NAMES.split(),
    fallback=_flag_function,
)
