// Prefix sums of a long array: each block scans its part, then the blocks' totals are added.
#include "check.cuh"

constexpr int kThreads = 128;

__global__ void scan_parts(const int* in, int* out, int* totals, int n) {
    __shared__ int part[2][kThreads];
    const int t = threadIdx.x, i = blockIdx.x * kThreads + t;
    int from = 0;
    part[0][t] = i < n ? in[i] : 0;
    __syncthreads();  // the part is whole
    for (int d = 1; d < kThreads; d *= 2, from ^= 1) {
        part[from ^ 1][t] = part[from][t] + (t >= d ? part[from][t - d] : 0);
        __syncthreads();  // the next round reads the other half
    }
    if (i < n) out[i] = part[from][t];
    if (t == kThreads - 1 && totals) totals[blockIdx.x] = part[from][t];
}
__global__ void add_totals(int* out, const int* totals, int n) {
    const int i = (blockIdx.x + 1) * kThreads + threadIdx.x;
    if (i < n) out[i] += totals[blockIdx.x];
}

int main() {
    const int n = 5000, blocks = (n + kThreads - 1) / kThreads;
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = i % 7 - 2;
    int *in = to_device(x), *out = to_device(x), *totals = to_device(std::vector<int>(blocks));
    scan_parts<<<blocks, kThreads>>>(in, out, totals, n);
    scan_parts<<<1, kThreads>>>(totals, totals, nullptr, blocks);
    add_totals<<<blocks - 1, kThreads>>>(out, totals, n);
    const std::vector<int> got = to_host(out, n);
    int wrong = 0, sum = 0;
    for (int i = 0; i < n; ++i) wrong += got[i] != (sum += x[i]);
    return verdict("block_scan", wrong);
}
