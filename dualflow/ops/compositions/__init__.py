"""Names that stand for a few calls of other ops: on lists of tensors, on shapes, before a cast."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
