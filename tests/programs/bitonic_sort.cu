// A bitonic sort: steps within a block in shared memory, longer ones through global memory.
#include <algorithm>

#include "check.cuh"

__device__ void order(int& a, int& b, bool ascending) {
    if ((a > b) == ascending) {
        const int t = a;
        a = b;
        b = t;
    }
}
__global__ void sort_parts(int* x, int size) {  // with distances of up to 64
    __shared__ int part[128];
    const int t = threadIdx.x, first = blockIdx.x * 128;
    part[t] = x[first + t];
    part[t + 64] = x[first + t + 64];
    for (int length = size ? size : 2; length <= (size ? size : 128); length *= 2)
        for (int d = length < 128 ? length / 2 : 64; d > 0; d /= 2) {
            __syncthreads();  // the step before is done
            const int i = 2 * t - (t & (d - 1));
            order(part[i], part[i + d], ((first + i) & length) == 0);
        }
    __syncthreads();  // the part is sorted
    x[first + t] = part[t];
    x[first + t + 64] = part[t + 64];
}
__global__ void step(int* x, int length, int d) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x, i = 2 * t - (t & (d - 1));
    order(x[i], x[i + d], (i & length) == 0);
}

int main() {
    const int n = 1024;
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = int((i * 7919u + 13u) % 2003u);
    int* device = to_device(x);
    sort_parts<<<n / 128, 64>>>(device, 0);
    for (int length = 256; length <= n; length *= 2) {
        for (int d = length / 2; d > 64; d /= 2) step<<<n / 128, 64>>>(device, length, d);
        sort_parts<<<n / 128, 64>>>(device, length);
    }
    std::sort(x.begin(), x.end());
    const std::vector<int> got = to_host(device, n);
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += got[i] != x[i];
    return verdict("bitonic_sort", wrong);
}
