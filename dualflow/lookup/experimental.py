"""Lookup tables that change: ``df.lookup.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.lookup.mutable_table import MutableHashTable as MutableHashTable

_publish(globals(), lazy={"dualflow.lookup.mutable_table": "MutableHashTable"})
