"""Commands that let other programs use satview, or extend it."""
