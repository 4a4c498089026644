"""How fast: measured beside PyTorch, stored, or estimated; never mixed."""
