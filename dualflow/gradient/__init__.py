"""Reverse mode: one sweep over the records of what ran, for eager tapes and for graphs alike."""
