"""Processes apart: their children, channels, limits and boxes. Knows no compiler.

What runs in them is in `guest/`, which imports nothing of `utils`.
"""
