"""One launcher that does whatever a kernel can do wrong, chosen by its argument `fault`."""

import torch

FAULTS = r"""
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
__global__ void good(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * x[i];
}
__global__ void forever(float* out) { volatile int i = 0; while (i < 1) { } out[0] = 1; }
__global__ void wild(float* out) { out[1ll << 40] = 1; }
__global__ void beyond(float* out, int at) { out[at] = 1; }
__global__ void says(int n) { printf("thread %d of %d\n", threadIdx.x, n); }

void run(const float* x, float* out, int n, int fault, int at) {
    static int calls = 0;
    ++calls;
    if (fault == 1) good<<<1, 4096>>>(x, out, n);
    if (fault == 2) forever<<<1, 32>>>(out);
    if (fault == 3) { volatile int wait = at; while (wait) { } }
    if (fault == 4) wild<<<1, 1>>>(out);
    if (fault == 5) *(volatile int*)nullptr = 1;
    if (fault == 6) { char* volatile p = (char*)malloc(8); free(p); free(p); }
    if (fault == 7) exit(at);
    if (fault == 8) _exit(at);
    if (fault == 9) beyond<<<1, 1>>>(out, at);
    if (fault == 10) says<<<1, 2>>>(n);
    if (fault == 11) { says<<<1, 1>>>(n); abort(); }
    if (fault == 12) { out[0] = calls; return; }
    if (fault == 13) for (;;) printf("a line that is printed over and over\n");
    if (fault == 16) { printf("thread 0 of 7\n"); _exit(1); }
    if (fault == 15) printf("no new line");
    if (fault == 14) good<<<0, 32>>>(x, out, n);
    good<<<(n + 255) / 256, 256>>>(x, out, n);
}
"""


def call(kernel, fault=0, at=0, n=100, timeout=20.0):
    """The input, and the run of `2 x` in the worker, which goes wrong as `fault` says (0: not)."""
    x, out = torch.randn(n), torch.full((n,), float("nan"))
    run = kernel.isolated({"x": x, "out": out, "n": n, "fault": fault, "at": at}, timeout=timeout)
    return x, run
