"""What panels show: models without widgets."""
