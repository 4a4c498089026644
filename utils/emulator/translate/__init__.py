"""CUDA C++ becomes C++ that g++ takes: launches, __shared__ arrays, and line numbers kept."""
