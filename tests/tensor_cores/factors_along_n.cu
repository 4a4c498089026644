// C = A B with rows of A in registers and B as it lies in memory, its rows along N: all three
// widths, chunk by chunk of 64 columns, against sums in double.
#include "../../kernels/include/hopper.cuh"
#include "sums.cuh"

constexpr int K = 64;  // of halves: rows of b

// a: (64, K), c: (64, N); b: (K, N)
template <int N>
__global__ void gemm(const __half* a, const __grid_constant__ CUtensorMap b, float* c) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __half(*tile)[K][64] = reinterpret_cast<__half(*)[K][64]>(memory);
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barriers();
        barrier_arrive_expect(&full, N * K * sizeof(__half));
        for (int chunk = 0; chunk < N / 64; ++chunk)
            load_tile(tile[chunk], &b, 64 * chunk, 0, &full);
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
    for (int k = 0; k < K / 16; ++k)
        wgmma_f16_mn(sums, rows[k], make_descriptor_mn(&tile[0][16 * k], sizeof(tile[0])), k > 0);
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = 0; i < N / 2; ++i)
        c[(row + 8 * (i / 2 % 2)) * N + left + 8 * (i / 4) + i % 2] = sums[i];
}

template <int N>
int wrong() {
    const std::vector<__half> a = some<__half>(64 * K, 1), b = some<__half>(N * K, 2);
    std::vector<__half> along_k(b.size());  // as count_wrong takes it
    for (int k = 0; k < K; ++k)
        for (int n = 0; n < N; ++n) along_k[n * K + k] = b[k * N + n];
    __half *da = to_device(a), *db = to_device(b);
    float* dc = to_device(std::vector<float>(64 * N, NAN));
    gemm<N><<<1, 128, N * K * sizeof(__half)>>>(da, make_map(db, K, N, K), dc);
    CHECK(cudaDeviceSynchronize());
    const int count = count_wrong(a, along_k, to_host(dc, 64 * N), 64, N, K);
    for (void* memory : {(void*)da, (void*)db, (void*)dc}) CHECK(cudaFree(memory));
    return count;
}

int main() {
    const int count = wrong<64>() + wrong<128>() + wrong<256>();
    printf("factors_along_n: %d wrong\n", count);
    return count != 0;
}
