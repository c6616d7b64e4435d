"""Lookup tables, from keys to values: ``df.lookup``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.lookup import experimental as experimental
    from dualflow.lookup.initializers import KeyValueTensorInitializer as KeyValueTensorInitializer
    from dualflow.lookup.initializers import TextFileIndex as TextFileIndex
    from dualflow.lookup.initializers import TextFileInitializer as TextFileInitializer
    from dualflow.lookup.static_tables import StaticHashTable as StaticHashTable
    from dualflow.lookup.static_tables import StaticVocabularyTable as StaticVocabularyTable

_publish(
    globals(),
    modules=("experimental",),
    lazy={
        "dualflow.lookup": "experimental",
        "dualflow.lookup.initializers": "KeyValueTensorInitializer TextFileIndex TextFileInitializer",
        "dualflow.lookup.static_tables": "StaticHashTable StaticVocabularyTable",
    },
)
