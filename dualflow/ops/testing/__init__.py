"""What ops are tested with: cases that are drawn from their samples."""
