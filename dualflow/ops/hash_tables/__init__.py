"""Searches for the keys of lookup tables."""
