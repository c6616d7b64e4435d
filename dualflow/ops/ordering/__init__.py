"""What order tells: distinct values, places in sorted rows, the largest elements, permutations."""
