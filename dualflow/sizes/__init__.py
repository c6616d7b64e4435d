"""Sizes of tensors: integers, and symbolic expressions in place of integers."""
