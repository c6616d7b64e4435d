"""The complete op registry."""

from dualflow.ops.families import load_families

load_families()
