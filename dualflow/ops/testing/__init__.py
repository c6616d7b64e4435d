"""Test cases of ops, generated from their samples."""
