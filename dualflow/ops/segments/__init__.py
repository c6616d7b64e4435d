"""Rows that belong together, told by integers: segments, partitions, and scatters that keep an extreme."""
