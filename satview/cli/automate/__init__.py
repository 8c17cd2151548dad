"""satview for other programs."""
