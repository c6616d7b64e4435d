"""Completes the registry before the test files read it: their cases are those of all ops."""

from dualflow.ops.families import load_families

load_families()
