"""A trace called: compiled, given its memory, repeated in a short way, put right where it fails."""
