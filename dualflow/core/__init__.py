"""The lowest package, which all others import: errors, dtypes, shapes, specs, trees, dispatch."""

# Imported here, before other modules are read: a source file that changes afterwards is newer.
from dualflow.core.import_time import IMPORTED_AT as IMPORTED_AT
from dualflow.core.module_finder import install

install()
