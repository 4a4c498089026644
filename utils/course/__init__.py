"""What is asked: exercises, their cases, gates and wrong kernels."""
