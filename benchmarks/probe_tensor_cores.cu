// Tensor cores on given operands, for probe_tensor_cores.py: built as a library, called from
// Python. Operands and results are bits in host memory: of each of `count` cases a (m, k), b (n,
// k), c and d (m, n), row-major. All functions return a cudaError.
#include <cuda_runtime.h>

#include "../kernels/include/hopper.cuh"
#include "../kernels/include/tensor_cores.cuh"

// One warp a case: m = 16, n = 8, k = 16.
template <bool BRAIN>
__global__ void halves(const unsigned* a, const unsigned* b, const float* c, float* d) {
    const int row = threadIdx.x / 4, pair = threadIdx.x % 4, at = blockIdx.x;
    a += at * 16 * 8, b += at * 8 * 8, c += at * 128, d += at * 128;  // 8 words of two each
    const unsigned left[4] = {a[row * 8 + pair], a[(row + 8) * 8 + pair], a[row * 8 + pair + 4],
                              a[(row + 8) * 8 + pair + 4]};
    const unsigned right[2] = {b[row * 8 + pair], b[row * 8 + pair + 4]};
    float sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = c[(row + i / 2 * 8) * 8 + pair * 2 + i % 2];
    if (BRAIN) mma_bf16(sums, left, right);
    else mma_f16(sums, left, right);
    for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * 8 + pair * 2 + i % 2] = sums[i];
}

// k = 8
__global__ void floats(const float* a, const float* b, const float* c, float* d) {
    const int row = threadIdx.x / 4, col = threadIdx.x % 4, at = blockIdx.x;
    a += at * 16 * 8, b += at * 8 * 8, c += at * 128, d += at * 128;
    const float left[4] = {a[row * 8 + col], a[(row + 8) * 8 + col], a[row * 8 + col + 4],
                           a[(row + 8) * 8 + col + 4]};
    const float right[2] = {b[row * 8 + col], b[row * 8 + col + 4]};
    float sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = c[(row + i / 2 * 8) * 8 + col * 2 + i % 2];
    mma_tf32(sums, left, right);
    for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * 8 + col * 2 + i % 2] = sums[i];
}

enum Type { F16, BF16, TF32 };

// Four warps a case: m = n = 64, rows of `steps` times 32 bytes along k.
template <Type TYPE>
__global__ void warpgroup(const uint4* a, const uint4* b, const float* c, float* d, int steps,
                          int add) {
    __shared__ __align__(1024) uint4 left[64 * 8], right[64 * 8];
    const int t = threadIdx.x, lane = t % 32, at = blockIdx.x, chunks = 2 * steps;
    a += at * 64 * chunks, b += at * 64 * chunks, c += at * 4096, d += at * 4096;
    for (int i = t; i < 64 * chunks; i += 128) {
        const int row = i / chunks, chunk = i % chunks;
        left[row * 8 + (chunk ^ row % 8)] = a[i];
        right[row * 8 + (chunk ^ row % 8)] = b[i];
    }
    fence_async();
    __syncthreads();
    float sums[32];
    auto place = [=](int i) {
        const int row = 16 * (t / 32) + 8 * (i / 2 % 2) + lane / 4;
        return row * 64 + 8 * (i / 4) + lane % 4 * 2 + i % 2;
    };
    for (int i = 0; i < 32; ++i) sums[i] = c[place(i)];
    wgmma_fence();
    for (int step = 0; step < steps; ++step) {
        const unsigned long long l = make_descriptor(&left[2 * step]), r = make_descriptor(&right[2 * step]);
        if (TYPE == F16) wgmma_f16(sums, l, r, step || add);
        if (TYPE == BF16) wgmma_bf16(sums, l, r, step || add);
        if (TYPE == TF32) wgmma_tf32(sums, l, r, step || add);
    }
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = 0; i < 32; ++i) d[place(i)] = sums[i];
}

template <class Launch>
static int with_copies(const void* a, size_t a_bytes, const void* b, size_t b_bytes, const void* c,
                       void* d, size_t d_bytes, Launch launch) {
    char *left, *right, *sums, *out;
    cudaMalloc(&left, a_bytes), cudaMalloc(&right, b_bytes);
    cudaMalloc(&sums, d_bytes), cudaMalloc(&out, d_bytes);
    cudaMemcpy(left, a, a_bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(right, b, b_bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(sums, c, d_bytes, cudaMemcpyHostToDevice);
    launch(left, right, reinterpret_cast<float*>(sums), reinterpret_cast<float*>(out));
    cudaError_t error = cudaGetLastError();
    if (!error) error = cudaMemcpy(d, out, d_bytes, cudaMemcpyDeviceToHost);
    cudaFree(left), cudaFree(right), cudaFree(sums), cudaFree(out);
    return error;
}

extern "C" int probe_mma(int type, int count, const void* a, const void* b, const void* c,
                         void* d) {
    auto launch = [=](const void* left, const void* right, const float* sums, float* out) {
        auto words = [](const void* p) { return static_cast<const unsigned*>(p); };
        auto numbers = [](const void* p) { return static_cast<const float*>(p); };
        if (type == F16) halves<false><<<count, 32>>>(words(left), words(right), sums, out);
        else if (type == BF16) halves<true><<<count, 32>>>(words(left), words(right), sums, out);
        else floats<<<count, 32>>>(numbers(left), numbers(right), sums, out);
    };
    return with_copies(a, size_t(count) * 512, b, size_t(count) * 256, c, d, size_t(count) * 512,
                       launch);
}

extern "C" int probe_wgmma(int type, int count, int steps, int add, const void* a, const void* b,
                           const void* c, void* d) {
    auto launch = [=](const void* left, const void* right, const float* sums, float* out) {
        auto kernel = type == F16    ? warpgroup<F16>
                      : type == BF16 ? warpgroup<BF16>
                                     : warpgroup<TF32>;
        kernel<<<count, 128>>>(static_cast<const uint4*>(left), static_cast<const uint4*>(right),
                               sums, out, steps, add);
    };
    const size_t bytes = size_t(count) * 64 * 32 * steps;
    return with_copies(a, bytes, b, bytes, c, d, size_t(count) * 4096 * 4, launch);
}
