"""Ragged tensors: tensors with rows of different lengths, as values and a partition of them into rows."""
