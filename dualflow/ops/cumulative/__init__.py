"""Running products and running sums of exponentials along an axis."""
