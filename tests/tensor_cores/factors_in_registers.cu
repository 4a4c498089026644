// C = A B^T with rows of A in the registers of a warpgroup, as the sums of another product would
// lie there: all three widths, against sums in double.
#include "../../kernels/include/hopper.cuh"
#include "sums.cuh"

constexpr int K = 64;  // of halves: a row of a tile

template <int N>
__device__ void multiply(float (&sums)[N], const unsigned (&a)[4], const __half* b, int add) {
    wgmma_f16(sums, a, make_descriptor(b), add);
}
template <int N>
__device__ void multiply(float (&sums)[N], const unsigned (&a)[4], const __nv_bfloat16* b,
                         int add) {
    wgmma_bf16(sums, a, make_descriptor(b), add);
}

// a: (64, K), c: (64, N); b: (N, K)
template <int N, class T>
__global__ void gemm(const T* a, const __grid_constant__ CUtensorMap b, float* c) {
    extern __shared__ __align__(1024) unsigned char memory[];
    T(*tile)[K] = reinterpret_cast<T(*)[K]>(memory);
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barriers();
        barrier_arrive_expect(&full, N * K * sizeof(T));
        load_tile(tile, &b, 0, 0, &full);
    }
    __syncthreads();
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, left = threadIdx.x % 4 * 2;
    unsigned rows[K / 16][4];
    for (int k = 0; k < K / 16; ++k)
        for (int i = 0; i < 4; ++i)
            memcpy(&rows[k][i], &a[(row + 8 * (i % 2)) * K + 16 * k + 8 * (i / 2) + left], 4);
    float sums[N / 2];
    barrier_wait(&full, 0);
    wgmma_fence();
    for (int k = 0; k < K / 16; ++k) multiply(sums, rows[k], &tile[0][16 * k], k > 0);
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = 0; i < N / 2; ++i)
        c[(row + 8 * (i / 2 % 2)) * N + left + 8 * (i / 4) + i % 2] = sums[i];
}

template <int N, class T>
int wrong() {
    const std::vector<T> a = some<T>(64 * K, 1), b = some<T>(N * K, 2);
    T *da = to_device(a), *db = to_device(b);
    float* dc = to_device(std::vector<float>(64 * N, NAN));
    gemm<N, T><<<1, 128, N * K * sizeof(T)>>>(da, make_map(db, N, K, N), dc);
    CHECK(cudaDeviceSynchronize());
    const int count = count_wrong(a, b, to_host(dc, 64 * N), 64, N, K);
    for (void* memory : {(void*)da, (void*)db, (void*)dc}) CHECK(cudaFree(memory));
    return count;
}

int main() {
    const int count = wrong<64, __half>() + wrong<128, __half>() + wrong<256, __half>() +
                      wrong<64, __nv_bfloat16>() + wrong<128, __nv_bfloat16>();
    printf("factors_in_registers: %d wrong\n", count);
    return count != 0;
}
