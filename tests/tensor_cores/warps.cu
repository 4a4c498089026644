// C = A B^T with what a warp has: pieces copied asynchronously into a ring of three stages,
// fragments loaded from there, products of 16 x 8. Matrices of sizes that no tile divides; held
// against sums in double.
#include "../../kernels/include/tensor_cores.cuh"
#include "sums.cuh"

constexpr int TILE = 64, STAGES = 3, BYTES = 64;  // BYTES: of a tile's row, along K

template <class T>
struct Of;
template <>
struct Of<__half> {
    static __device__ void product(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        mma_f16(d, a, b);
    }
};
template <>
struct Of<__nv_bfloat16> {
    static __device__ void product(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        mma_bf16(d, a, b);
    }
};
template <>
struct Of<float> {
    static __device__ void product(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        float left[4], right[2];
        for (int i = 0; i < 4; ++i) left[i] = __uint_as_float(a[i]);
        for (int i = 0; i < 2; ++i) right[i] = __uint_as_float(b[i]);
        mma_tf32(d, left, right);
    }
};

// Rows of 64 bytes: the four pieces of a row change places, so that eight rows meet all banks.
struct Stage {
    uint4 a[TILE][4], b[TILE][4];
};
__device__ int place(int row, int piece) { return piece ^ row / 2 % 4; }

template <class T>
__device__ void fetch(uint4 (&tile)[TILE][4], const T* matrix, int first, int rows, int at,
                      int depth) {
    constexpr int EACH = 16 / sizeof(T);  // elements in a piece
    for (int i = threadIdx.x; i < TILE * 4; i += 128) {
        const int row = i / 4, piece = i % 4, k = at + piece * EACH;
        const int left = first + row < rows ? depth - k : 0;
        const int bytes = left <= 0 ? 0 : left >= EACH ? 16 : left * sizeof(T);
        const T* from = bytes ? matrix + size_t(first + row) * depth + k : matrix;
        copy_async(&tile[row][place(row, piece)], from, bytes);
    }
}

// Four warps, each with 32 rows and 32 columns.
template <class T>
__global__ void gemm(const T* a, const T* b, float* c, int m, int n, int depth) {
    __shared__ Stage stages[STAGES];
    constexpr int WIDE = BYTES / sizeof(T);
    const int row = blockIdx.y * TILE, col = blockIdx.x * TILE;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, tiles = (depth + WIDE - 1) / WIDE;
    const int down = warp / 2 * 32, right = warp % 2 * 32;
    float sums[2][4][4] = {};
    for (int i = 0; i < STAGES - 1; ++i) {
        fetch(stages[i].a, a, row, m, i * WIDE, depth);
        fetch(stages[i].b, b, col, n, i * WIDE, depth);
        commit_copies();
    }
    for (int i = 0; i < tiles; ++i) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();
        const int next = i + STAGES - 1;
        fetch(stages[next % STAGES].a, a, row, m, next * WIDE, depth);
        fetch(stages[next % STAGES].b, b, col, n, next * WIDE, depth);
        commit_copies();
        const Stage& s = stages[i % STAGES];
        for (int k = 0; k < 4; k += 2) {  // pieces
            unsigned left[2][4], other[2][4];
            for (int j = 0; j < 2; ++j) {
                const int r = down + 16 * j + lane % 16, o = right + 16 * j + lane % 16;
                load_matrices(left[j], &s.a[r][place(r, k + lane / 16)]);
                load_matrices(other[j], &s.b[o][place(o, k + lane / 16)]);
            }
            for (int x = 0; x < 2; ++x)
                for (int y = 0; y < 4; ++y) {
                    const unsigned (&o)[4] = other[y / 2];
                    const unsigned pair[2] = {o[y % 2], o[y % 2 + 2]};
                    Of<T>::product(sums[x][y], left[x], pair);
                }
        }
    }
    for (int x = 0; x < 2; ++x)
        for (int y = 0; y < 4; ++y)
            for (int i = 0; i < 4; ++i) {
                const int r = row + down + 16 * x + lane / 4 + i / 2 * 8;
                const int j = col + right + 8 * y + lane % 4 * 2 + i % 2;
                if (r < m && j < n) c[size_t(r) * n + j] = sums[x][y][i];
            }
}

template <class T>
int wrong(int m, int n, int k) {
    const std::vector<T> a = some<T>(m * k, 1), b = some<T>(n * k, 2);
    T *da = to_device(a), *db = to_device(b);
    float* dc = to_device(std::vector<float>(size_t(m) * n, NAN));
    gemm<T><<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), 128>>>(da, db, dc, m, n, k);
    CHECK(cudaDeviceSynchronize());
    const int count = count_wrong(a, b, to_host(dc, size_t(m) * n), m, n, k);
    for (void* memory : {(void*)da, (void*)db, (void*)dc}) CHECK(cudaFree(memory));
    return count;
}

int main() {
    const int count =
        wrong<__half>(70, 67, 200) + wrong<__nv_bfloat16>(70, 67, 104) + wrong<float>(70, 67, 100);
    printf("warps: %d wrong\n", count);
    return count != 0;
}
