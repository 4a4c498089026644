"""Mutants that a machine makes: small faults at every place of every solution.

`python -m tests.mutation` tries them; kernels/README.md says how.
"""
