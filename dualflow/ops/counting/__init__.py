"""Counts of integers, of pairs of integers, and of numbers in intervals."""
