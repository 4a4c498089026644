// __shfl_sync, _up, _down, _xor: types, widths 1 to 32, partial masks, divergent halves.
#include "expect.cuh"

template <class T>
__host__ __device__ T of_lane(int lane) {  // a different value in each lane, all bytes in use
    return T(T(1) / T(3) + T(lane) * T(1000003));
}

// The results as CUDA's programming guide words them, for every width and many deltas.
template <class T>
__device__ void all_kinds() {
    const int rank = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int lane = rank % 32;
    const T mine = of_lane<T>(lane);
    for (int width = 1; width <= 32; width *= 2) {
        const int first = lane / width * width, last = first + width - 1;
        for (int k = 0; k <= 32; k += 1 + k / 4) {
            EXPECT(__shfl_sync(~0u, mine, k, width), of_lane<T>(first + k % width));
            EXPECT(__shfl_up_sync(~0u, mine, k, width),
                   of_lane<T>(lane - k < first ? lane : lane - k));
            EXPECT(__shfl_down_sync(~0u, mine, k, width),
                   of_lane<T>(lane + k > last ? lane : lane + k));
            if (k < 32)  // an xor may reach an earlier segment, and never a later one
                EXPECT(__shfl_xor_sync(~0u, mine, k, width),
                       of_lane<T>((lane ^ k) > last ? lane : lane ^ k));
        }
        EXPECT(__shfl_sync(~0u, mine, -1, width),
               of_lane<T>(last));  // the index is taken mod width
    }
}
__global__ void types() {
    all_kinds<int>();
    all_kinds<unsigned>();
    all_kinds<long>();
    all_kinds<unsigned long>();
    all_kinds<long long>();
    all_kinds<unsigned long long>();
    all_kinds<float>();
    all_kinds<double>();
}

// Only the named lanes take part.
__global__ void partial_masks() {
    const int lane = threadIdx.x;
    const unsigned odd = 0xaaaaaaaau, even = 0x55555555u;
    if (lane % 2) EXPECT(__shfl_sync(odd, lane, (lane + 2) % 32), (lane + 2) % 32);
    if (lane < 5) EXPECT(__shfl_sync(0x1fu, lane * lane, 4), 16);
    // Each branch has its mask and its own shuffle.
    int sum = lane;
    if (lane % 2) {
        for (int k = 2; k < 32; k *= 2) sum += __shfl_xor_sync(odd, sum, k);
    } else {
        for (int k = 2; k < 32; k *= 2) sum += __shfl_xor_sync(even, sum, k);
    }
    EXPECT(sum, lane % 2 ? 256 : 240);
    // One call, two masks: each half is a group of its own.
    const unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    EXPECT(__shfl_sync(half, lane, lane / 16 * 16 + 3), lane / 16 * 16 + 3);
    float value = float(lane);
    for (int k = 8; k > 0; k /= 2) value = fmaxf(value, __shfl_xor_sync(half, value, k));
    EXPECT(value, lane < 16 ? 15.0f : 31.0f);
}

// The same mask named at two places in the source is still one shuffle.
__global__ void two_places() {
    const int lane = threadIdx.x;
    int got;
    if (lane < 16) got = __shfl_sync(~0u, lane, 20);
    else got = __shfl_sync(~0u, lane, 2);
    EXPECT(got, lane < 16 ? 20 : 2);
}

// A block that ends within a warp: the last warp has but 11 lanes.
__global__ void short_warp(int* sums) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned mask = warp == 1 ? (1u << 11) - 1 : ~0u;
    int sum = threadIdx.x;
    for (int k = 16; k > 0; k /= 2) {
        int other = __shfl_down_sync(mask, sum, k);
        if (lane + k < (warp == 1 ? 11 : 32)) sum += other;
    }
    if (lane == 0) sums[warp] = sum;
}

// The classic: a sum over the block, warp by warp.
__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset >>= 1)
        value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}
__global__ void block_sums(const float* x, float* sums) {
    __shared__ float partial[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float sum = warp_sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
    if (lane == 0) partial[warp] = sum;
    __syncthreads();  // one partial sum from each warp
    if (warp == 0) {
        sum = warp_sum(lane < blockDim.x / 32 ? partial[lane] : 0.0f);
        if (lane == 0) sums[blockIdx.x] = sum;
    }
}

int main() {
    types<<<2, 64>>>();
    types<<<1, dim3(8, 4, 2)>>>();
    partial_masks<<<1, 32>>>();
    two_places<<<1, 32>>>();
    Buffer<int> sums(2);
    short_warp<<<1, 43>>>(sums.device);
    sums.download();
    EXPECT(sums[0], 31 * 32 / 2);
    EXPECT(sums[1], (32 + 42) * 11 / 2);

    Buffer<float> x(40 * 256), block(40);
    for (size_t i = 0; i < x.host.size(); ++i) x[i] = float(i % 17);
    x.upload();
    block_sums<<<40, 256>>>(x.device, block.device);
    block.download();
    for (int b = 0; b < 40; ++b) {
        float sum = 0;
        for (int i = 0; i < 256; ++i) sum += x[b * 256 + i];
        EXPECT(block[b], sum);
    }
    return finish();
}
