// Products of tiles by WMMA: each shape and type that both factors may lie in, and a matrix by
// tiles in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <type_traits>

#include "check.cuh"

using namespace nvcuda;
using rows = wmma::row_major;
using cols = wmma::col_major;

// d = a * b + 1, then all of it doubled. T: as a fragment calls it, E: as it lies in memory.
template <int M, int N, int K, class T, class E, class D, class LA, class LB>
__global__ void tile(const E* a, const E* b, D* d) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, LA> of_a;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LB> of_b;
    wmma::fragment<wmma::accumulator, M, N, K, D> sums;
    wmma::fill_fragment(sums, D(1));
    wmma::load_matrix_sync(of_a, a, std::is_same<LA, rows>::value ? K : M);
    wmma::load_matrix_sync(of_b, b, std::is_same<LB, rows>::value ? N : K);
    wmma::mma_sync(sums, of_a, of_b, sums);
    for (int i = 0; i < sums.num_elements; i++) sums.x[i] = sums.x[i] + sums.x[i];
    wmma::store_matrix_sync(d, sums, N, wmma::mem_row_major);
}
template <class E>
std::vector<E> whole_numbers(int n, unsigned seed) {  // so that every sum is exact
    std::vector<E> values(n);
    for (E& v : values) v = E(float(int((seed = seed * 1664525u + 1013904223u) >> 8) % 13 - 6));
    return values;
}
template <int M, int N, int K, class T, class E, class D, class LA, class LB>
int wrong() {
    const std::vector<E> a = whole_numbers<E>(M * K, 1), b = whole_numbers<E>(K * N, 2);
    D* out;
    CHECK(cudaMalloc(&out, M * N * sizeof(D)));
    tile<M, N, K, T, E, D, LA, LB><<<1, 32>>>(to_device(a), to_device(b), out);
    const std::vector<D> d = to_host(out, M * N);
    int count = 0;
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            float sum = 1;
            for (int k = 0; k < K; k++) {
                const E x = a[std::is_same<LA, rows>::value ? i * K + k : k * M + i];
                sum += float(x) * float(b[std::is_same<LB, rows>::value ? k * N + j : j * K + k]);
            }
            count += float(d[i * N + j]) != 2 * sum;
        }
    }
    return count;
}

// C = A * B, (n, n) each, by rows. One block of four warps owns 32 x 32 elements, a warp 16 x 16.
__global__ void gemm(const half* A, const half* B, float* C, int n) {
    __shared__ alignas(32) half a[32][16], b[16][32];
    const int warp = threadIdx.x / 32, row = blockIdx.y * 32, col = blockIdx.x * 32;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, rows> of_a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, rows> of_b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int k = 0; k < n; k += 16) {
        for (int i = threadIdx.x; i < 512; i += blockDim.x) {
            a[i / 16][i % 16] = A[(row + i / 16) * n + k + i % 16];
            b[i / 32][i % 32] = B[(k + i / 32) * n + col + i % 32];
        }
        __syncthreads();
        wmma::load_matrix_sync(of_a, &a[warp / 2 * 16][0], 16);
        wmma::load_matrix_sync(of_b, &b[0][warp % 2 * 16], 32);
        wmma::mma_sync(sums, of_a, of_b, sums);
        __syncthreads();
    }
    float* out = C + (row + warp / 2 * 16) * n + col + warp % 2 * 16;
    wmma::store_matrix_sync(out, sums, n, wmma::mem_row_major);
}
int wrong_in_gemm() {
    const int n = 96;
    const std::vector<half> a = whole_numbers<half>(n * n, 3), b = whole_numbers<half>(n * n, 4);
    float* out;
    CHECK(cudaMalloc(&out, n * n * sizeof(float)));
    gemm<<<dim3(n / 32, n / 32), 128>>>(to_device(a), to_device(b), out, n);
    const std::vector<float> c = to_host(out, n * n);
    int count = 0;
    for (int i = 0; i < n * n; i++) {
        float sum = 0;
        for (int k = 0; k < n; k++) sum += float(a[i / n * n + k]) * float(b[k * n + i % n]);
        count += c[i] != sum;
    }
    return count;
}

int main() {
    using wmma::precision::tf32;
    using bf16 = __nv_bfloat16;
    int count = wrong<16, 16, 16, half, half, float, rows, rows>() +
                wrong<16, 16, 16, half, half, half, cols, cols>() +
                wrong<32, 8, 16, half, half, float, rows, cols>() +
                wrong<8, 32, 16, half, half, float, cols, rows>() +
                wrong<8, 32, 16, bf16, bf16, float, rows, cols>() +
                wrong<16, 16, 16, bf16, bf16, float, cols, rows>() +
                wrong<16, 16, 8, tf32, float, float, rows, cols>() +
                wrong<16, 16, 16, signed char, signed char, int, rows, cols>();
    return verdict("products by WMMA", count + wrong_in_gemm());
}
