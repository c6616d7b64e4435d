"""Distinct values, binary search, the largest elements, and permutations."""
