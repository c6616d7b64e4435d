"""Collective ops: exchanges of tensors between the workers of a group."""
