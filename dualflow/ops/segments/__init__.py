"""Reductions of rows grouped by integers: segments, partitions, and scatters that keep an extreme."""
