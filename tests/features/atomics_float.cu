// Atomics on float and double, and those that are made of atomicCAS.
#include "expect.cuh"

constexpr int kBlocks = 64, kThreads = 128, kAll = kBlocks * kThreads;

// The sums are whole numbers below 2^24: exact in any order.
__global__ void sums(float* sum, double* sum_double, float* exchanged) {
    __shared__ float partial;
    __shared__ double partial_double;
    if (threadIdx.x == 0) partial = 0, partial_double = 0;
    __syncthreads();  // the partial sums are 0
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&partial, float(i % 5));
    atomicAdd(&partial_double, i * 0x1p-20);
    EXPECT(atomicExch(exchanged, float(i)) >= -1.0f, true);
    __syncthreads();  // the block has added
    if (threadIdx.x == 0) {
        EXPECT(atomicAdd(sum, partial) >= 0.0f, true);
        EXPECT(atomicAdd(sum_double, partial_double) >= 0.0, true);
    }
}
__global__ void straight(float* sum, double* sum_double) {
    atomicAdd(sum, 1.0f);
    atomicAdd(sum_double, -0.5);
}

// CUDA has no atomicMax for float: try until nobody else came between.
__device__ float atomic_max(float* address, float value) {
    int* bits = reinterpret_cast<int*>(address);
    int seen = *bits, expected;
    do {
        expected = seen;
        if (__int_as_float(expected) >= value) break;
        seen = atomicCAS(bits, expected, __float_as_int(value));
    } while (seen != expected);
    return __int_as_float(seen);
}
__device__ double atomic_multiply(double* address, double value) {
    auto* bits = reinterpret_cast<unsigned long long*>(address);
    unsigned long long seen = *bits, expected;
    do {
        expected = seen;
        seen =
            atomicCAS(bits, expected, __double_as_longlong(__longlong_as_double(expected) * value));
    } while (seen != expected);
    return __longlong_as_double(seen);
}
// For numbers above zero the order of floats is that of their bits.
__device__ void atomic_max_positive(float* address, float value) {
    atomicMax(reinterpret_cast<int*>(address), __float_as_int(value));
}

__global__ void loops(float* most, float* most_positive, double* product) {
    __shared__ float block_most;
    if (threadIdx.x == 0) block_most = -INFINITY;
    __syncthreads();  // the block's maximum is a start
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 37 % kAll;
    atomic_max(&block_most, -1.0f - i);
    atomic_max_positive(most_positive, 0.25f * i);
    atomic_multiply(product, i % 2 ? 2.0 : 0.5);
    __syncthreads();  // the block has its maximum
    if (threadIdx.x == 0) atomic_max(most, block_most);
}

int main() {
    Buffer<float> sum(1), exchanged(1, -1.0f);
    Buffer<double> sum_double(1);
    sums<<<kBlocks, kThreads>>>(sum.device, sum_double.device, exchanged.device);
    sum.download(), sum_double.download(), exchanged.download();
    float want = 0;
    for (int i = 0; i < kAll; ++i) want += i % 5;
    EXPECT(sum[0], want);
    EXPECT(sum_double[0], kAll * (kAll - 1) / 2 * 0x1p-20);
    EXPECT(exchanged[0] >= 0.0f && exchanged[0] < kAll, true);

    straight<<<kBlocks, kThreads>>>(sum.device, sum_double.device);
    sum.download(), sum_double.download();
    EXPECT(sum[0], want + kAll);
    EXPECT(sum_double[0], kAll * (kAll - 1) / 2 * 0x1p-20 - 0.5 * kAll);

    Buffer<float> most(1, -INFINITY), most_positive(1);
    Buffer<double> product(1, 3.0);
    loops<<<kBlocks, kThreads>>>(most.device, most_positive.device, product.device);
    most.download(), most_positive.download(), product.download();
    EXPECT(most[0], -1.0f);
    EXPECT(most_positive[0], 0.25f * (kAll - 1));
    EXPECT(product[0], 3.0);
    return finish();
}
