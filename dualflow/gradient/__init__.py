"""Reverse-mode differentiation: one sweep over records of executed ops, for eager tapes and graphs."""
