"""The passes, in the one order in which they run."""
