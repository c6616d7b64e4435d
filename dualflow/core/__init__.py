"""The lowest package, which all others import: errors, dtypes, shapes, specs, trees, dispatch."""

from dualflow.core.import_time import IMPORTED_AT as IMPORTED_AT
