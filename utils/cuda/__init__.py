"""CUDA text in, a Python callable out, which runs in a process apart. Knows no exercise."""
