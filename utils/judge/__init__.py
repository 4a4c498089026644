"""Is it right: PyTorch in float64, hazards, gates, and a verdict with its reason."""
