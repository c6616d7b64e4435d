"""A trace called: compiled, given its arrays, in a short way, put right where it fails, and under tapes."""
