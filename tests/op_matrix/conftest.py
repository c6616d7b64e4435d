"""Imports all op modules before collection, so that the matrix has every registered op."""

from dualflow.ops.families import load_families

load_families()
