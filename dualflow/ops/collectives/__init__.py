"""Collective ops: sums, gathers and broadcasts over the workers of a group."""
