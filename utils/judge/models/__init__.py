"""Judging a model file: what it computes, with whose kernels, what it does to its process."""
