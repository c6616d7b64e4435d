"""The lowest package, which all others import: errors, dtypes, shapes, specs, trees, dispatch."""
