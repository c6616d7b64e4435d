"""Random numbers: draws from generators, generators and their seeds, and the functions that users call."""
