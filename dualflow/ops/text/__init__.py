"""Strings: what computes with them, and what makes numbers and text of each other."""
