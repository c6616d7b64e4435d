"""Test cases of ops, drawn from their samples."""
