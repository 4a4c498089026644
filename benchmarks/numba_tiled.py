"""The tiled product of `gemm_tiled.cu`, in numba: run by emulator_speed.py with the simulator on.

Prints the seconds of one launch on size³, after checking its result.
"""

import sys
import time

import numpy as np
from numba import cuda, float32

TILE = 32


@cuda.jit
def gemm_tiled(A, B, C, M, N, K):
    As = cuda.shared.array((TILE, TILE), float32)
    Bs = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    total = float32(0)
    for k0 in range(0, K, TILE):
        As[ty, tx] = A[row, k0 + tx] if row < M and k0 + tx < K else 0
        Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < K and col < N else 0
        cuda.syncthreads()
        for k in range(TILE):
            total += As[ty, k] * Bs[k, tx]
        cuda.syncthreads()
    if row < M and col < N:
        C[row, col] = total


size = int(sys.argv[1])
A, B = np.random.randn(2, size, size).astype(np.float32)
C = np.zeros((size, size), np.float32)
blocks = -(-size // TILE)
start = time.perf_counter()
gemm_tiled[(blocks, blocks), (TILE, TILE)](A, B, C, size, size, size)
seconds = time.perf_counter() - start
np.testing.assert_allclose(C, A @ B, atol=1e-3, rtol=1e-3)
print(seconds)
