"""Grading a class: what was handed in, run under nbval in a box, points, a table, feedback."""
