"""Cumulative products, and cumulative logarithms of sums of exponentials."""
