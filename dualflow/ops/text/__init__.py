"""Ops on strings: case, parts, patterns, and conversions from and to numbers."""
