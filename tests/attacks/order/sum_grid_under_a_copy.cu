// sum_grid: race
// n goes to the device by an asynchronous copy of pinned memory, which the host then sets to 0
// says: race between the host and a copy from its memory
#include "quads.cuh"
#include "reduce.cuh"

constexpr int THREADS = 256;
constexpr int QUADS = 4;  // loads of a thread that are under way together

// x: (n), from a multiple of 16 bytes on. out: one value, the sum of x
// One thread owns QUADS quads of x in each round, one grid apart. One block owns THREADS * QUADS of
// them a round, and adds one sum to out. Changed from `sum_warp`: quads; loads n / 128 requests.
__global__ void sum_grid_kernel(const float* x, float* out, const int* size) {
    int n = *size;
    int first = blockIdx.x * THREADS + threadIdx.x;
    int stride = gridDim.x * THREADS;  // the threads of the grid
    int quads = n / 4;
    float sum = 0.0f;
    int q = first;
    for (; q + (QUADS - 1) * stride < quads; q += QUADS * stride) {
        float4 four[QUADS];
#pragma unroll
        for (int j = 0; j < QUADS; j++) four[j] = quad(&x[4 * (q + j * stride)]);
#pragma unroll
        for (int j = 0; j < QUADS; j++) sum += four[j].x + four[j].y + (four[j].z + four[j].w);
    }
    for (; q < quads; q += stride) {  // less than a round
        float4 four = quad(&x[4 * q]);
        sum += four.x + four.y + (four.z + four.w);
    }
    for (int i = 4 * quads + first; i < n; i += stride) {  // less than a quad
        sum += x[i];
    }
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x == 0) {
        atomicAdd(out, sum);
    }
}

void sum_grid(const float* x, float* out, int n, int blocks) {
    cudaMemset(out, 0, sizeof(float));
    static int *host = nullptr, *device = nullptr;
    if (!host) {
        cudaMallocHost(&host, sizeof(int));
        cudaMalloc(&device, sizeof(int));
    }
    *host = n;
    cudaMemcpyAsync(device, host, sizeof(int), cudaMemcpyHostToDevice, 0);
    sum_grid_kernel<<<blocks, THREADS>>>(x, out, device);
    *host = 0;
}
